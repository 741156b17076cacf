#pragma once

#include "common/core/record.h"

namespace podqos::core {

/// Does the pod request more than the whole node has for pods (`claimed`, see grant_requests)? No
/// scheduler would have sent it here and no kubelet admitted it, so that no value of Kubernetes' is
/// known for it. Never of BestEffort pods, whose requests do not count, nor of adopted ones, whose
/// kubelet decides.
[[nodiscard]] bool exceeds_node_cpu(const PodRecord& record);
[[nodiscard]] bool exceeds_node(const PodRecord& record);  ///< with CPU or memory

}  // namespace podqos::core
