#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/app/place.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "common/core/events/decide_admission.h"
#include "common/core/events/decide_reconciliation.h"
#include "common/core/settings.h"
#include "common/store/state_files.h"

// What podqos would do: the code of the events on a copy of the records and on a machine that only
// records its changes (cgroup::DryRun). Changes nothing and logs nothing.
namespace podqos::app {

/// The node that a preview reads.
struct NodeView {
  std::unique_ptr<store::StateFiles> files;  ///< nullptr before the first pod
  std::unique_ptr<cgroup::Machine> machine;
  core::NodeCapacity capacity;
};
/// The state directory, which stays locked as long as the view lives, and this machine.
/// @return kPermission if nothing could be written to them
[[nodiscard]] Result<NodeView> view_node(const core::Settings& settings);

/// What reconcile() would do now.
struct ReconcilePreview {
  core::ReconcileReport report;   ///< as reconcile() would return it
  std::vector<std::string> plan;  ///< all changes in order, one line each, see core::render()
};

/// What follows after the lock is released, lowering a tier's memory limit step by step, is not
/// part of it.
/// @return the errors of reconcile(), except that records of a newer version and pods that could
///         not be written are left to the report.
[[nodiscard]] Result<ReconcilePreview> preview_reconcile(const core::Settings& settings,
                                                         NodeView node);

/// What place() would do now.
struct PlacementPreview {
  core::Admission admission;
  std::string config;                ///< the config.json for the runtime, without hooks
  std::vector<std::string> changes;  ///< values of cgroups, see describe_written()
  std::vector<std::string> plan;     ///< as ReconcilePreview::plan
};

/// @return nullopt if podqos does not manage the container; the errors of place()
[[nodiscard]] Result<std::optional<PlacementPreview>> preview_place(const core::Settings& settings,
                                                                    const PlacementRequest& call,
                                                                    NodeView node);

/// A value that was written, behind what it is for: "tier Burstable: PATH/FILE: OLD → NEW".
/// @param written  see cgroup::Report
[[nodiscard]] std::string describe_written(std::string_view written);

}  // namespace podqos::app
