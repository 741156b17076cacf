#pragma once

#include "common/core/kubernetes/pod_resources.h"
#include "common/core/record.h"

namespace podqos::core {

/// The pod with the engine's sums as pod-level resources: the pod that its cgroup is for.
[[nodiscard]] Pod whole_pod(const PodRecord& record);
/// pod_requests() of whole_pod().
[[nodiscard]] ResourceList requests_of(const PodRecord& record);
/// Their CPU and memory; `pods` is 1.
[[nodiscard]] TierSum amounts_requested(const PodRecord& record);
/// pod_limits() of whole_pod().
[[nodiscard]] ResourceList limits_of(const PodRecord& record);

/// Removes the resources of a container that has ended, and is in the record, from a pod whose
/// containers are not all known. The pod's requests and limits stay as high as the highest sum of
/// containers that ran at the same time: engines do not say which containers are init containers,
/// but that equals Kubernetes' sum with them, and what still runs may use what the limit allowed. A
/// container that is still pending never started and leaves nothing. Does nothing for complete
/// pods.
void forget_container(PodRecord& record, const ContainerRecord& ended);

/// The pod with the sums as its pod-level resources, to compute its class, its request and the
/// values of its cgroup.
[[nodiscard]] Pod with_sums(Pod pod, const EngineSums& sums);

}  // namespace podqos::core
