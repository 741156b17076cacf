#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/app/node_figures.h"
#include "common/base/error.h"
#include "common/codec/exposition.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/settings.h"

namespace podqos::app {

/// The value of the label "tier": "kubepods", "burstable", "besteffort". The Guaranteed tier is the
/// root itself.
[[nodiscard]] std::string_view tier_label(core::QosClass qos_class);

/// Writes the metrics of the node: pods and requests by class, the kernel's values of the tiers,
/// and those of the pods that have series of their own. A sample without a value is omitted: a
/// limit without a sample is unlimited.
/// @param figures  nullopt: they could not be read; all metrics but podqos_collector_success are
///                 omitted
void write_node_metrics(const std::optional<NodeFigures>& figures, codec::Exposition& out);

/// The metrics of the node, as podqos-nri serves them beside its own and podqosctl prints them.
struct NodeMetrics {
  std::string text;            ///< in the text format of Prometheus
  std::optional<Error> error;  ///< why they have no pods and tiers; nullopt if they have
  std::string incidents;       ///< which records are corrupt
};
/// Reads them, without the lock. A missing state directory has no pods.
[[nodiscard]] NodeMetrics node_metrics(const core::Settings& settings);

}  // namespace podqos::app
