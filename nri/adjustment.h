#pragma once

#include "common/core/container_facts.h"
#include "nri/api.h"

namespace podqos::nri {

/// The edit of a config.json as the runtime is asked for it: a field is set only where podqos
/// changes something, for two plugins that set the same one fail the container.
[[nodiscard]] api::ContainerAdjustment adjustment_for(const core::ConfigEdit& edit);

}  // namespace podqos::nri
