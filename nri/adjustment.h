#pragma once

#include "common/core/container_facts.h"
#include "nri/api.h"

namespace podqos::nri {

/// Converts an edit to an NRI adjustment for the answer to CreateContainer. Only fields that podqos
/// changes are set: if two plugins set the same field, the runtime fails the container
/// (containerd/nri, pkg/adaptation/result.go).
[[nodiscard]] api::ContainerAdjustment adjustment_for(const core::ConfigEdit& edit);

}  // namespace podqos::nri
