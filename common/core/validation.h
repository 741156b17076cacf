#pragma once

#include <string>
#include <vector>

#include "common/core/pod.h"

namespace podqos::core {

/// Checks the resources of a pod with API defaults as the API server does. Errors are negative
/// quantities, fractions of extended resources, requests above limits, huge pages and extended
/// resources whose request differs from the limit, huge pages without cpu or memory, pod-level
/// requests below the sum of the containers, and container limits above the pod's.
/// @return a sentence per error with container, resource and values; empty for a valid pod
/// @note pkg/apis/core/validation/validation.go.
[[nodiscard]] std::vector<std::string> validate(const Pod& pod);

/// Like validate(), but also requires a container, names of resources that containers can have, and
/// whole huge pages. A manifest must have these, an annotation need not.
/// @note pkg/apis/core/validation/validation.go validateContainers, validateContainerResourceName,
///       validateResourceQuantityHugePageValue.
[[nodiscard]] std::vector<std::string> validate_manifest(const Pod& pod);

}  // namespace podqos::core
