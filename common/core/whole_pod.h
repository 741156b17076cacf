#pragma once

#include <string_view>

#include "common/core/pod.h"
#include "common/core/record.h"

namespace podqos::core {

/// The pod with the engine's sums as pod-level resources: the pod that its cgroup is for.
[[nodiscard]] Pod whole_pod(const PodRecord& record);
/// pod_requests() of whole_pod().
[[nodiscard]] ResourceList requests_of(const PodRecord& record);
/// pod_limits() of whole_pod().
[[nodiscard]] ResourceList limits_of(const PodRecord& record);

/// Removes the inferred resources of a container that has ended from an adopted pod, whose requests
/// stay at least as high as before. Engines do not say which containers are init containers, but
/// the highest sum of containers that ran at the same time equals Kubernetes' sum with them. Does
/// nothing for complete pods and podqos's own pods.
void forget_container(PodRecord& record, std::string_view name);

}  // namespace podqos::core
