#pragma once

#include "common/core/record.h"

namespace podqos::core {

/// Does the pod claim more than the node has granted (grant_requests)? Never of BestEffort pods,
/// whose requests do not count, nor of adopted ones, whose kubelet decides.
[[nodiscard]] bool lacks_cpu(const PodRecord& record);
[[nodiscard]] bool lacks_memory(const PodRecord& record);

/// The pod as far as the node has granted it. Critical is a pod only with all that it claims.
[[nodiscard]] Pod granted_pod(const PodRecord& record);

}  // namespace podqos::core
