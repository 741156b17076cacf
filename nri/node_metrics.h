#pragma once

#include <optional>

#include "common/app/node_figures.h"
#include "nri/exposition.h"

namespace podqos::nri {

/// Writes the metrics of the node: pods and requests by class, and the kernel's values of the
/// tiers. A sample without a value is omitted: no sample of a limit means that there is no limit.
/// @param figures  nullopt: they could not be read; all metrics but podqos_collector_success are
///                 omitted
void write_node_metrics(const std::optional<app::NodeFigures>& figures, Exposition& out);

}  // namespace podqos::nri
