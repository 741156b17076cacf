#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/codec/json_tree.h"
#include "common/core/kubernetes/pod_resources.h"

namespace podqos::codec {

/// Bounds of a manifest: bytes, and containers of all kinds together.
constexpr std::size_t kMaxPodJsonBytes = std::size_t{1} << 20U;
constexpr std::size_t kMaxPodContainers = 1000;

/// Reads a Pod manifest from a document, also of another notation: metadata, spec and
/// status.qosClass, as far as core::Pod has them; other fields are ignored. API defaults are not
/// applied.
///
/// Quantities are JSON strings, optionally with white space around them, or bare numbers, whose
/// exact text is parsed; null is 0. Elsewhere null means absent.
/// @return kTooLarge beyond the bounds above; kInvalidArgument for a kind other than Pod, a wrong
/// type, a repeated member, a container name that is not a DNS label or not unique, or a malformed
/// quantity, each with the JSON path ("spec.containers[2].resources.limits.cpu").
/// @note staging/src/k8s.io/api/core/v1/types.go (Pod, PodSpec).
[[nodiscard]] Result<core::Pod> parse_pod(const JsonNode& node);

/// The same for the text of a bare PodSpec, as in the annotation podqos.io/pod, with name and
/// namespace of the pod as its "metadata"; JSON paths start in the spec.
/// @return kInvalidArgument also for a name or namespace that check_cgroup_component() refuses
[[nodiscard]] Result<core::Pod> parse_pod_spec(std::string_view json);

/// Formats the spec as compact JSON that parse_pod_spec() reads back with the same containers,
/// resources, overhead, priority, name and namespace. Quantities are exact decimal strings. Uid,
/// status and origin are not included.
[[nodiscard]] std::string format_pod_spec(const core::Pod& pod);

}  // namespace podqos::codec
