#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/app/reconcile.h"
#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "common/core/pods/grants.h"
#include "common/core/settings.h"
#include "common/store/memory_store.h"

namespace podqos::app {

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
/// As above, for these records and this machine, which is only read.
[[nodiscard]] Result<ReconcilePreview> preview_reconcile(const core::Settings& settings,
                                                         store::StoredRecords records,
                                                         std::unique_ptr<cgroup::Machine> machine,
                                                         const core::NodeCapacity& capacity);

}  // namespace podqos::app
