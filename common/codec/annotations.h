#pragma once

#include <cstddef>
#include <string_view>

#include "common/base/error.h"
#include "common/core/claims.h"
#include "common/core/container_facts.h"
#include "common/core/pod.h"

namespace podqos::codec {

/// What is read of one container: more, or longer ones, are refused. Some thirty keys and two for
/// each of a hundred containers are more than any pod needs, and each makes its record longer.
constexpr std::size_t kMaxKnownAnnotations = 256;
constexpr std::size_t kMaxAnnotationSize = std::size_t{256} << 10U;

/// Does podqos look at annotations of this key: podqos.io/* and those that parse_engine_annotations
/// reads?
[[nodiscard]] bool is_known_annotation(std::string_view key);

/// Reads podqos.io/*. podqos.io/pod has the API's defaults applied and is valid by its rules; of
/// the short forms the containers' requests default to their limits, pod_level stays as written
/// (with_api_defaults on the assembled pod completes it, since its defaults depend on all
/// containers).
///
/// @return kInvalidArgument that names the annotation, its value and what is expected; an unknown
/// podqos.io/ key is an
///         error that names the nearest known one.
[[nodiscard]] Result<core::PodqosAnnotations> parse_podqos_annotations(
    const core::Annotations& annotations);

/// Parses the short form "cpu=250m,memory=1Gi,hugepages-2Mi=4Mi"; white space around an item is
/// allowed.
/// @return kInvalidArgument for nothing at all, another resource, one that is there twice, a
/// negative quantity.
[[nodiscard]] Result<core::ResourceList> parse_short_form(std::string_view text);

/// What an engine alone decides of a container, and no author of its pod.
struct EngineEvidence {
  std::string_view id = {};      ///< of the container; "" when unknown
  std::string_view cgroup = {};  ///< where the engine puts it, as a path; "" when unknown
};

/// Reads what the engine itself says. Engines copy annotations of pod authors beside their own, so
/// that keys of two engines may meet. Whose count is decided by what an author cannot write:
///
/// - a cgroup libpod-ID is Podman's: only its sandbox id counts;
/// - io.kubernetes.cri-o.ContainerID = ID, or a HostnamePath below a directory ID, is CRI-O's,
///   which draws the id when the annotations are there: on containers its SandboxID, Labels,
///   SandboxName and Name, which it writes behind what it copies; on the sandbox the plain
///   io.kubernetes.pod.* keys, which are its labels and the last that it writes;
/// - else containerd's CRI keys, which it writes behind what it copies;
/// - else io.container.manager says whose they are; plain keys count for nothing without it.
///
/// @return kInvalidArgument, naming the annotation, for a uid, id or number that is malformed.
[[nodiscard]] Result<core::EngineAnnotations> parse_engine_annotations(
    const core::Annotations& annotations, const EngineEvidence& evidence = {});

}  // namespace podqos::codec
