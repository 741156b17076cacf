#include "common/app/preview.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "common/app/log.h"
#include "common/app/runtime_update.h"
#include "common/app/transaction.h"
#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/cgroup/dry_run.h"
#include "common/cgroup/node.h"
#include "common/core/cgroups/layout.h"
#include "common/store/memory_store.h"
#include "common/store/state_copy.h"

namespace podqos::app {

namespace {

using Change = store::MemoryStore::Change;

/// The line of a change to the records; empty for what each transaction writes anyway.
std::string line_of(const Change& change) {
  const std::string_view verb = change.erased ? "erase  " : "save   ";
  switch (change.what) {
    case Change::What::kPod: return cat(verb, "record of pod ", change.subject);
    case Change::What::kEntry: return cat(verb, "index entry of pod ", change.subject);
    case Change::What::kMark:
    case Change::What::kTiers: break;
  }
  return {};
}

/// Whether a line is about the copy of a record in its cgroup: it lags behind the record where
/// containers have only been confirmed, and says nothing to the operator.
bool is_copy(std::string_view line) {
  return line.starts_with("attr ") && line.ends_with(cat(" ", core::kRecordAttribute));
}

core::Settings without_log(core::Settings settings) {
  settings.log_sink = "none";
  return settings;
}

}  // namespace

Result<ReconcilePreview> preview_reconcile(const core::Settings& settings,
                                           store::StoredRecords records,
                                           std::unique_ptr<cgroup::Machine> machine,
                                           const core::NodeCapacity& capacity) {
  Log log{"podqosctl", without_log(settings)};
  const core::TiersRecord tiers = records.tiers;
  ReconcilePreview preview;
  const auto on_change = [&preview](const Change& change) -> Status {
    if (std::string line = line_of(change); !line.empty()) preview.plan.push_back(std::move(line));
    return {};
  };
  Transaction transaction{settings, log, std::make_unique<store::MemoryStore>(records, on_change),
                          std::make_unique<cgroup::DryRun>(std::move(machine), preview.plan),
                          capacity};
  PODQOS_ASSIGN(auto report, recompute(transaction, Warnings::kLogged, follow_runtime));
  preview.report = std::move(report);
  PODQOS_TRY(transaction.finish());
  std::erase_if(preview.plan, is_copy);
  if (records.tiers != tiers) preview.plan.emplace_back("save   tiers");
  for (const std::string& incident : transaction.store().incidents())
    preview.report.warnings.push_back(incident);
  return preview;
}

Result<ReconcilePreview> preview_reconcile(const core::Settings& settings) {
  PODQOS_ASSIGN(
      auto copy,
      store::copy_state({.path = settings.state_dir,
                         .lock_timeout = std::chrono::milliseconds{settings.lock_deadline_ms}}));
  if (copy && !copy->lock) {
    return fail(ErrorCode::kPermission,
                cat(settings.state_dir, " is mounted read-only, so nothing can be reconciled"));
  }
  // As a reconciliation opens it, so that the preview fails where that would.
  PODQOS_ASSIGN(auto machine, cgroup::Cgroupfs::open());
  PODQOS_ASSIGN(const auto capacity, cgroup::node_capacity(settings));
  return preview_reconcile(settings, copy ? copy->records : store::StoredRecords{},
                           std::make_unique<cgroup::Cgroupfs>(std::move(machine)), capacity);
}

}  // namespace podqos::app
