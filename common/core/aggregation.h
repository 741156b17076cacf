#pragma once

#include "common/core/pod.h"

namespace podqos::core {

enum class PodLevel : std::uint8_t {
  kInclude,  ///< spec.resources overwrites the containers' aggregate
  kSkip,     ///< containers only
};
enum class Overhead : std::uint8_t { kInclude, kSkip };

/// Sum of requests of the pod: containers, init containers and sidecars by Kubernetes' max rule,
/// pod-level values, overhead. Exact.
/// @note staging/src/k8s.io/component-helpers/resource/helpers.go PodRequests.
[[nodiscard]] ResourceList pod_requests(const Pod& pod, PodLevel pod_level = PodLevel::kInclude,
                                        Overhead overhead = Overhead::kInclude);

/// Sum of limits of the pod; overhead is added only to resources whose limit is present and
/// non-zero.
/// @note the same file, PodLimits.
[[nodiscard]] ResourceList pod_limits(const Pod& pod, PodLevel pod_level = PodLevel::kInclude,
                                      Overhead overhead = Overhead::kInclude);

/// Makes each quantity of `most` at least that of `candidate`.
void raise_to(ResourceList& most, const ResourceList& candidate);

/// Is the limit of `resource` declared for the whole pod (every container's, by the callback rule
/// of ResourceConfigForPod; a non-zero pod-level limit declares it)?
/// @note pkg/kubelet/cm/helpers_linux.go.
[[nodiscard]] bool limit_declared(const Pod& pod, std::string_view resource);

/// cpu, memory and hugepages-*: the names allowed at pod level.
[[nodiscard]] bool is_supported_pod_level_resource(std::string_view name);

}  // namespace podqos::core
