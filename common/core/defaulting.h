#pragma once

#include "common/core/pod.h"

namespace podqos::core {

/// Applies the API server's defaulting of resources: every quantity rounded up to milli; each
/// container's and init container's missing request := its limit; the pod-level defaults of
/// requests and huge page limits.
/// @note pkg/apis/core/v1/defaults.go SetDefaults_Pod.
[[nodiscard]] Pod with_api_defaults(Pod pod);

/// Fills in the priority that the classes which every cluster has stand for, where the pod names
/// none; of other classes only the cluster knows it.
/// @note plugin/pkg/admission/priority; pkg/apis/scheduling/types.go SystemCriticalPriority.
[[nodiscard]] Pod with_priority_of_class(Pod pod);

}  // namespace podqos::core
