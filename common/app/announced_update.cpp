#include "common/app/announced_update.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/app/container_start.h"
#include "common/app/reconciler.h"
#include "common/app/resize_pod.h"
#include "common/base/units.h"
#include "common/cgroup/cgroup_view.h"
#include "common/core/pods/apply_resize.h"
#include "common/store/store.h"

namespace podqos::app {

namespace {

constexpr std::int64_t kNone = -1;

/// Takes over a limit that is raised, or lifted.
void raise_memory(core::EngineResources& held, const core::EngineResources& update) {
  const auto limit = update.memory_limit;
  const bool is_bounded = held.memory_limit.value_or(kNone) > 0;
  if (limit && is_bounded && (*limit == kNone || *limit > *held.memory_limit))
    held.memory_limit = limit;
}
void raise_quota(core::EngineResources& held, const core::EngineResources& update) {
  if (held.cpu_quota.value_or(kNone) <= 0) return;
  const std::int64_t quota = update.cpu_quota.value_or(*held.cpu_quota);
  const std::int64_t period = update.cpu_period.value_or(held.period().value());
  if (quota < kNone || quota == 0 || period <= 0) return;
  if (quota != kNone && Wide{quota} * held.period().value() <= Wide{*held.cpu_quota} * period)
    return;
  held.cpu_quota = quota;
  held.cpu_period = period;
}

/// The record with the limits that are raised; the same if its pod does not follow.
core::PodRecord followed(Transaction& transaction, const core::PodRecord& before, std::size_t index,
                         const core::EngineResources& update) {
  core::PodRecord record = before;
  const core::ContainerRecord& container = record.containers[index];
  // Of a pod that is being resized the container has the old values still.
  if (record.resizing || !core::tells_of_updates(record, container)) return record;
  std::vector<core::HeldResources> held(record.containers.size());
  const cgroup::CgroupView own{transaction.machine(), container.cgroup};
  held[index] = cgroup::held_by(transaction.machine(), container, own);
  raise_memory(held[index].values, update);
  raise_quota(held[index].values, update);
  core::follow_updates(record, held, transaction.rules());
  return record;
}

/// Whether an update of the container may concern podqos, as the records say without the lock.
bool may_concern(const core::Settings& settings, const std::string& id) {
  auto records = store::Store::open({.path = settings.state_dir}, store::Opening::kReadUnlocked);
  if (!records) return true;
  auto found = store::find_container(*records, id, "");
  if (!found || !*found) return !found;
  const core::PodRecord& record = (*found)->record;
  return record.cpu_burst || core::has_inferred_resources(record, (*found)->container());
}

}  // namespace

Status follow_announced(Transaction& transaction, const AnnouncedUpdate& update) {
  PODQOS_TRY(reconcile_interrupted(transaction));
  PODQOS_ASSIGN(const auto found, store::find_container(transaction.store(), update.id, ""));
  if (!found || found->record.kubelets_own) return transaction.finish_if_changed();
  const core::PodRecord& before = found->record;
  write_burst(transaction, before, before.containers[found->index],
              update.values.cpu_quota.transform([](auto quota) { return Micros{quota}; }));
  core::PodRecord record = followed(transaction, before, found->index, update.values);
  if (record != before) {
    PODQOS_ASSIGN(const auto refused, save_resized(transaction, record, before));
    if (refused) PODQOS_TRY(transaction.postpone(record, *refused));
  }
  return transaction.finish_if_changed();
}

Result<bool> follow_announced(const core::Settings& settings, Log& log,
                              const AnnouncedUpdate& update, const Timeouts& timeouts) {
  if (!may_concern(settings, update.id)) return false;
  PODQOS_ASSIGN(auto transaction, Transaction::open_existing(settings, log, timeouts));
  if (transaction) PODQOS_TRY(follow_announced(*transaction, update));
  return transaction.has_value();
}

}  // namespace podqos::app
