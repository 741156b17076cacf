#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/core/kubernetes/pod_resources.h"

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

/// Whether amounts of this resource are bytes: memory, huge pages, ephemeral storage.
[[nodiscard]] bool is_in_bytes(std::string_view name);

/// "0.256 bytes: did you mean 256Mi?", for an amount of bytes that is not whole: most likely a
/// misspelt unit, since "m" is a thousandth.
[[nodiscard]] std::string describe_fraction(Quantity bytes);

/// The pod's amounts in bytes that are not whole. The API server accepts them with a warning, and
/// the kubelet rounds them up.
/// @return a sentence per amount with container, resource and likely meaning
/// @note pkg/api/pod/warnings.go warningsForPodSpecAndMeta.
[[nodiscard]] std::vector<std::string> fractional_amounts(const Pod& pod);

/// The pod's memory limits below which no runtime starts a container.
/// @return a sentence per limit with its likely meaning
/// @note 6 MiB: Docker's daemon/daemon_unix.go, linuxMinMemory.
[[nodiscard]] std::vector<std::string> low_memory_limits(const Pod& pod);

}  // namespace podqos::core
