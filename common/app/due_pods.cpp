#include "common/app/due_pods.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/app/reconciler.h"
#include "common/cgroup/cgroupfs.h"
#include "common/store/store.h"

namespace podqos::app {

namespace {

/// Uids of the pods that are due.
Result<std::vector<std::string>> find_due(const core::Settings& settings, const DuePods& due) {
  std::vector<std::string> found;
  auto records = store::Store::open({.path = settings.state_dir}, store::Opening::kReadUnlocked);
  if (!records && records.error().code == ErrorCode::kNotFound) return found;
  if (!records) return fail(std::move(records).error());
  PODQOS_ASSIGN(auto machine, cgroup::Cgroupfs::open({.access = cgroup::Access::kRead}));
  PODQOS_ASSIGN(const auto uids, records->pod_uids());
  for (const std::string& uid : uids) {
    const auto record = records->pod(uid);
    if (record && *record && due.is_due(machine, **record)) found.push_back(uid);
  }
  return found;
}

}  // namespace

Status handle_due_pods(const core::Settings& settings, Log& log, const Timeouts& timeouts,
                       const DuePods& due) {
  PODQOS_ASSIGN(const auto uids, find_due(settings, due));
  if (uids.empty()) return {};
  PODQOS_ASSIGN(auto transaction, Transaction::open_existing(settings, log, timeouts));
  if (!transaction) return {};
  PODQOS_TRY(reconcile_interrupted(*transaction));
  for (const std::string& uid : uids) {
    PODQOS_ASSIGN(auto record, transaction->store().pod(uid));
    if (!record || record->released_at) continue;
    const core::PodRecord before = *record;
    due.handle(*transaction, *record);
    if (*record != before) PODQOS_TRY(transaction->save(*record, &before));
  }
  return transaction->finish_if_changed();
}

}  // namespace podqos::app
