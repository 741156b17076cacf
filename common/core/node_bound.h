#pragma once

#include "common/core/record.h"

namespace podqos::core {

/// Whether the pod requests more CPU than one pod may claim of the node (`claimed`, see
/// grant_requests). Kubernetes has no values for such a pod, since its kubelet would not admit it.
/// False for BestEffort pods, whose requests do not count, and for adopted pods.
[[nodiscard]] bool exceeds_node_cpu(const PodRecord& record);
/// The same for CPU or memory.
[[nodiscard]] bool exceeds_node(const PodRecord& record);

}  // namespace podqos::core
