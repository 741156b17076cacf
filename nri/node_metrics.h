#pragma once

#include <optional>
#include <vector>

#include "common/app/node_figures.h"
#include "nri/exposition.h"

namespace podqos::nri {

/// The node as metrics: pods and requests by class, what the kernel says of the tiers. A sample for
/// which there is no value is left out: an absent limit is no limit.
/// @param figures  nullopt: they could not be taken; all but podqos_collector_success is left out.
[[nodiscard]] std::vector<MetricFamily> node_metrics(
    const std::optional<app::NodeFigures>& figures);

}  // namespace podqos::nri
