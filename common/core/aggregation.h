#pragma once

#include "common/core/pod.h"

namespace podqos::core {

/// Whether spec.resources counts in a sum.
enum class PodLevel : std::uint8_t {
  kInclude,  ///< spec.resources overrides the sum of the containers
  kSkip,     ///< containers only
};
/// Whether spec.overhead counts in a sum.
enum class Overhead : std::uint8_t { kInclude, kSkip };

/// Requests of the whole pod, per resource: the maximum of what init containers need while they
/// run and what containers and sidecars need together; then pod-level values and overhead. Exact,
/// without rounding.
/// @note staging/src/k8s.io/component-helpers/resource/helpers.go PodRequests.
[[nodiscard]] ResourceList pod_requests(const Pod& pod, PodLevel pod_level = PodLevel::kInclude,
                                        Overhead overhead = Overhead::kInclude);

/// Limits of the whole pod by the same rule. Overhead is added only to resources whose limit is
/// present and non-zero.
/// @note staging/src/k8s.io/component-helpers/resource/helpers.go PodLimits.
[[nodiscard]] ResourceList pod_limits(const Pod& pod, PodLevel pod_level = PodLevel::kInclude,
                                      Overhead overhead = Overhead::kInclude);

/// Raises each quantity of `most` to at least that of `candidate`, adding missing resources.
void raise_to(ResourceList& most, const ResourceList& candidate);

/// Whether the pod as a whole has a limit for `resource`: a non-zero pod-level limit, or a non-zero
/// limit in every container. For init containers the limits of sidecars already running count.
/// @note pkg/kubelet/cm/helpers_linux.go ResourceConfigForPod.
[[nodiscard]] bool limit_declared(const Pod& pod, std::string_view resource);

/// Whether spec.resources may contain the resource: cpu, memory and hugepages-*.
[[nodiscard]] bool is_supported_pod_level_resource(std::string_view name);

}  // namespace podqos::core
