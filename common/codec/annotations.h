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

/// Reads what the engine itself says. Engines copy annotations of pod authors beside their own, so
/// that io.container.manager, which an engine always overwrites, decides whose keys count: "libpod"
/// only its sandbox id, "cri-o" CRI-O's own, its labels and plain io.kubernetes.pod.* keys,
/// anything else containerd's CRI keys or, where none is, CRI-O's own.
///
/// @return kInvalidArgument, naming the annotation, for a uid, id or number that is malformed.
[[nodiscard]] Result<core::EngineAnnotations> parse_engine_annotations(
    const core::Annotations& annotations);

}  // namespace podqos::codec
