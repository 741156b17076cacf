#pragma once

#include <string>
#include <vector>

#include "common/core/pod.h"

namespace podqos::core {

/// What the API server would refuse a (defaulted) pod for: negative quantities, request above
/// limit, huge pages request != limit, pod-level requests below the containers' aggregate,
/// container limit above the pod's.
/// @return one sentence each, naming container, resource and both values; empty for a valid pod.
/// @note pkg/apis/core/validation/validation.go.
[[nodiscard]] std::vector<std::string> validate(const Pod& pod);

/// validate, and that there is a container at all: annotations may speak of a pod without naming
/// any, a manifest may not.
/// @note pkg/apis/core/validation/validation.go validateContainers.
[[nodiscard]] std::vector<std::string> validate_manifest(const Pod& pod);

}  // namespace podqos::core
