#pragma once

#include "common/core/pod.h"

namespace podqos::core {

/// Applies the API server's defaults for resources: missing requests of containers and init
/// containers become their limits, pod-level requests and huge page limits are filled in, and every
/// quantity is rounded up to thousandths.
/// @note pkg/apis/core/v1/defaults.go SetDefaults_Pod.
[[nodiscard]] Pod with_api_defaults(Pod pod);

/// Fills in a missing priority for system-cluster-critical and system-node-critical, the classes
/// that every cluster has. The priorities of other classes are known to the cluster only.
/// @note plugin/pkg/admission/priority; pkg/apis/scheduling/types.go SystemCriticalPriority.
[[nodiscard]] Pod with_priority_of_class(Pod pod);

}  // namespace podqos::core
