#include "common/app/announced_update.h"

#include <cstddef>
#include <vector>

#include "common/app/container_start.h"
#include "common/app/reconciler.h"
#include "common/app/resize_pod.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/pods/apply_resize.h"
#include "common/core/pods/pod_name.h"
#include "common/store/store.h"

namespace podqos::app {

namespace {

/// What the container's cgroup will hold.
core::HeldResources after_update(core::HeldResources held, const core::EngineResources& update,
                                 core::WeightFormula formula) {
  const auto take = [](auto& value, const auto& updated) {
    if (updated) value = updated;
  };
  take(held.values.memory_limit, update.memory_limit);
  take(held.values.cpu_quota, update.cpu_quota);
  take(held.values.cpu_period, update.cpu_period);
  if (!update.cpu_shares) return held;
  held.values.cpu_shares = update.cpu_shares;
  if (held.cpu_weight)
    held.cpu_weight = core::cpu_weight_for(CpuShares{*update.cpu_shares}, formula);
  return held;
}

/// The record after the update; the same if its pod does not follow.
core::PodRecord followed(Transaction& transaction, const core::PodRecord& before, std::size_t index,
                         const core::EngineResources& update) {
  core::PodRecord record = before;
  const core::ContainerRecord& container = record.containers[index];
  if (record.kubelets_own || !core::tells_of_updates(record, container)) return record;
  const core::NodeRules node{.formula = transaction.formula(),
                             .page_size = transaction.capacity().page_size,
                             .settings = transaction.settings()};
  std::vector<core::HeldResources> held(record.containers.size());
  const cgroup::CgroupView own{transaction.machine(), container.cgroup};
  held[index] =
      after_update(cgroup::held_by(transaction.machine(), container, own), update, node.formula);
  core::follow_updates(record, held, node);
  return record;
}

}  // namespace

Status follow_announced(Transaction& transaction, const AnnouncedUpdate& update) {
  PODQOS_TRY(reconcile_interrupted(transaction));
  PODQOS_ASSIGN(const auto found, store::find_container(transaction.store(), update.id, ""));
  if (!found) return transaction.finish_if_changed();
  const core::PodRecord& before = found->record;
  write_burst(transaction, before, before.containers[found->index],
              update.values.cpu_quota.transform([](auto quota) { return Micros{quota}; }));
  core::PodRecord record = followed(transaction, before, found->index, update.values);
  if (record != before) {
    PODQOS_ASSIGN(const auto refused, save_resized(transaction, record, before));
    if (refused) {
      transaction.log().info(cat(core::name_of(record), ": follows the update of container ",
                                 printable(update.id), " after its runtime: ", refused->message));
      PODQOS_TRY(transaction.revisit(record, *refused));
    }
  }
  return transaction.finish_if_changed();
}

Status follow_announced(const core::Settings& settings, Log& log, const AnnouncedUpdate& update,
                        const Timeouts& timeouts) {
  PODQOS_ASSIGN(auto transaction, Transaction::open_existing(settings, log, timeouts));
  return transaction ? follow_announced(*transaction, update) : Status{};
}

}  // namespace podqos::app
