#pragma once

#include <cstddef>
#include <string_view>

#include "common/base/error.h"
#include "common/codec/json_place.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/pods/request.h"

namespace podqos::codec {

/// Bounds per container; more or longer annotations are refused (kTooLarge). Some thirty keys plus
/// two for each of a hundred containers are more than any pod needs, and each one makes the pod's
/// record longer.
constexpr std::size_t kMaxKnownAnnotations = 256;
constexpr std::size_t kMaxAnnotationSize = std::size_t{256} << 10U;

/// Whether podqos reads annotations of this key: podqos.io/*, core::kSplitMemory and those of
/// parse_engine_annotations().
[[nodiscard]] bool is_known_annotation(std::string_view key);

/// Reads the annotations of an object that podqos knows.
/// @return kTooLarge beyond the bounds; kInvalidArgument for one that is repeated or not a string.
[[nodiscard]] Result<core::Annotations> read_known_annotations(const JsonPlace& object);

/// Parses the podqos.io/* annotations. The spec in podqos.io/pod has the API's defaults applied and
/// is validated by the API's rules. In the short forms, requests of containers default to their
/// limits; `pod_level` is returned as written, since its defaults depend on all containers (apply
/// with_api_defaults() to the assembled pod).
///
/// @return kInvalidArgument naming the annotation, its value and what was expected; for an unknown
/// podqos.io/ key also the nearest known one.
[[nodiscard]] Result<core::PodqosAnnotations> parse_podqos_annotations(
    const core::Annotations& annotations);

/// Parses the short form "cpu=250m,memory=1Gi,hugepages-2Mi=4Mi"; white space around items is
/// allowed.
/// @return kInvalidArgument for an empty list, an unknown resource, a repeated one, or a negative
/// quantity.
[[nodiscard]] Result<core::ResourceList> parse_short_form(std::string_view text);

/// Whether parse_engine_annotations() reads `key`.
[[nodiscard]] bool is_engine_annotation(std::string_view key);

/// The container id in the name of Podman's cgroup of a container: libpod-ID, and libpod-payload-ID
/// under `--cgroups=split`, Quadlet's default; systemd adds ".scope".
/// @param cgroup  a path, or its last component
/// @return "" if the name has no such form.
/// @note Podman libpod/container_internal_linux.go, getOCICgroupPath().
[[nodiscard]] std::string_view podman_container_id(std::string_view cgroup);

/// Podman's id of the pod in the name of a cgroup above its containers:
/// "machine-libpod_pod_ID.slice" with systemd, "/libpod_parent/ID" without.
/// @return "" if no such cgroup is in the path.
/// @note Podman libpod/runtime_pod_linux.go, platformMakePod().
[[nodiscard]] std::string_view podman_pod_id(std::string_view cgroup);

/// Properties of a container that only the engine decides, not the author of its pod.
struct EngineEvidence {
  std::string_view id = {};      ///< container id; "" if unknown
  std::string_view cgroup = {};  ///< cgroup path chosen by the engine; "" if unknown
  std::string_view bundle = {};  ///< "" if unknown
};

/// Parses the annotations that the engine sets. Engines copy annotations of pod authors next to
/// their own, so that keys of two engines may be present. The trusted ones are chosen by evidence
/// that an author cannot forge:
///
/// - A cgroup named libpod-ID is Podman's: only its sandbox id is used.
/// - io.kubernetes.cri-o.ContainerID = ID, or a HostnamePath below a directory named ID, is
///   CRI-O's, which generates the id after the author's annotations are fixed. Of a container,
///   SandboxID, Labels, SandboxName and Name are used, which CRI-O writes after the copied ones; of
///   a sandbox, the plain io.kubernetes.pod.* keys, which are its labels and written last.
/// - Otherwise containerd's CRI keys, which it writes after the copied ones.
/// - Otherwise io.container.manager names the engine; without it plain keys are ignored.
///
/// The engine is that of the annotations, but Docker's where cgroup or bundle are: Docker writes
/// none, and its containers may have any. nerdctl's and ctr's containers are containerd's.
///
/// @return kInvalidArgument, naming the annotation, for a malformed uid, id or number.
/// @note containerd internal/cri/annotations/annotations.go; CRI-O pkg/annotations/.
[[nodiscard]] Result<core::EngineAnnotations> parse_engine_annotations(
    const core::Annotations& annotations, const EngineEvidence& evidence = {});

}  // namespace podqos::codec
