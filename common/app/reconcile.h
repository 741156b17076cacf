#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/app/log.h"
#include "common/app/recompute.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "common/core/pods/grants.h"
#include "common/core/settings.h"
#include "common/store/state_files.h"

namespace podqos::app {

/// Lets one of podqos's own pods follow what runtimes have changed of its running containers
/// (core::follow_updates), and reports that and what it does not follow. Reads the limits of each
/// container.
void follow_runtime(Transaction& transaction, core::PodRecord& record, ReconcileReport& report);

/// As recompute(), with follow_runtime(); then, step by step with the lock released in between,
/// finishes what was not done at once, and lowers a tier's memory limit that usage had kept above
/// the rule.
[[nodiscard]] Result<ReconcileReport> reconcile(const core::Settings& settings, Log& log,
                                                Warnings warnings = Warnings::kLogged);

/// What reconcile() would do now.
struct ReconcilePreview {
  ReconcileReport report;         ///< as reconcile() would return it, but for the values written
  std::vector<std::string> plan;  ///< all changes in order, one line each, see core::render()
};

/// Carries out a reconciliation on a copy of the records and on a machine that only records its
/// changes (cgroup::DryRun), under the lock. Changes nothing and logs nothing. What follows after
/// the lock is released, lowering a tier's memory limit step by step, is not part of it.
/// @return the errors of reconcile(), except that records of a newer version and pods that could
///         not be written are left to the report.
[[nodiscard]] Result<ReconcilePreview> preview_reconcile(const core::Settings& settings);
/// As above, for the records in these files and this machine, which are only read.
[[nodiscard]] Result<ReconcilePreview> preview_reconcile(const core::Settings& settings,
                                                         std::unique_ptr<store::StateFiles> files,
                                                         std::unique_ptr<cgroup::Machine> machine,
                                                         const core::NodeCapacity& capacity);

}  // namespace podqos::app
