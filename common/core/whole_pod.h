#pragma once

#include <string_view>

#include "common/core/pod.h"
#include "common/core/record.h"

namespace podqos::core {

/// The pod as its cgroup sees it: its own resources, with what the engine says of it as a whole.
[[nodiscard]] Pod whole_pod(const PodRecord& record);
/// pod_requests() and pod_limits() of that.
[[nodiscard]] ResourceList requests_of(const PodRecord& record);
[[nodiscard]] ResourceList limits_of(const PodRecord& record);

/// A container of an adopted pod has ended: what is inferred from its values counts no longer, but
/// the pod requests no less than it did while the container lived. An engine does not tell an init
/// container from another: the highest sum of those that lived at once is what Kubernetes' rule for
/// both comes to. Changes nothing in a pod whose spec is known, nor in podqos's own.
void forget_container(PodRecord& record, std::string_view name);

}  // namespace podqos::core
