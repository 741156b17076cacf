#pragma once

#include "common/core/pod.h"

namespace podqos::core {

/// Applies the API server's defaulting of resources: every quantity rounded up to milli; each
/// container's and init container's missing request := its limit; the pod-level defaults of
/// requests and huge page limits.
/// @note pkg/apis/core/v1/defaults.go SetDefaults_Pod.
[[nodiscard]] Pod with_api_defaults(Pod pod);

}  // namespace podqos::core
