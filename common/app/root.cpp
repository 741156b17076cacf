#include "common/app/root.h"

#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/cgroup/kubelet.h"
#include "common/cgroup/root.h"
#include "common/core/pod_plan.h"
#include "common/core/root_choice.h"
#include "common/core/root_plan.h"

namespace podqos::app {

namespace {

/// Leaves the root in use to a kubelet.
/// @param kubelet  how it was detected, for the log
core::EventPlan leave_root_to(Transaction& transaction, std::string_view kubelet) {
  core::TiersRecord& tiers = transaction.tiers();
  if (tiers.yielded) return {};
  transaction.log().warning(core::describe_yield(tiers.kubepods, kubelet));
  return core::plan_yield(tiers);
}

/// Records a marked root of which the state was lost as the root in use.
void record_root(Transaction& transaction, std::string kubepods) {
  core::TiersRecord& tiers = transaction.tiers();
  tiers.kubepods = std::move(kubepods);
  if (std::string top = cgroup::marked_top(transaction.machine(), tiers.kubepods); !top.empty())
    tiers.top = std::move(top);
}

/// Removes the root of the other driver, which a node without pods may leave.
/// @return kConflict if it cannot be removed.
Status remove_other_root(Transaction& transaction, core::Driver driver) {
  const std::string in_use = transaction.tiers().kubepods;
  // Removal may have failed when the last pod ended, because systemd or another program used the
  // root.
  if (auto done = transaction.execute({core::SetMark{}}); !done)
    return fail(std::move(done).error());
  if (auto done = remove_root(transaction); !done) return done;
  // Committed separately: the rest of the transaction may end without a change of its own.
  if (auto done = transaction.store().commit(); !done) return done;
  if (transaction.tiers().kubepods.empty()) return {};
  return fail(core::describe_remaining_root(in_use, driver,
                                            cgroup::holder_of(transaction.machine(), in_use)));
}

}  // namespace

Result<std::string> choose_root(Transaction& transaction, core::Driver driver,
                                const std::optional<std::string>& just_made) {
  auto choice = core::choose_root(transaction.tiers(), transaction.settings().cgroup_root, driver);
  if (!choice) return fail(std::move(choice).error());
  if (choice->step == core::RootStep::kUse) return std::move(choice->root);
  if (choice->step == core::RootStep::kReplace) {
    if (auto removed = remove_other_root(transaction, driver); !removed)
      return fail(std::move(removed).error());
  }
  auto snapshot = cgroup::observe_root(transaction.machine(), choice->root, just_made);
  if (!snapshot) return fail(std::move(snapshot).error());
  if (auto free = core::check_root(choice->root, *snapshot); !free)
    return fail(std::move(free).error());
  return std::move(choice->root);
}

bool has_lost_root(Transaction& transaction, const std::string& kubepods) {
  if (!transaction.tiers().kubepods.empty() || transaction.recovered()) return false;
  return cgroup::is_marked(transaction.machine(), kubepods).value_or(false);
}

Status find_root(Transaction& transaction) {
  const core::TiersRecord& tiers = transaction.tiers();
  for (const std::string& root : core::possible_roots(transaction.settings().cgroup_root)) {
    if (!tiers.kubepods.empty()) break;
    auto snapshot = cgroup::observe_root(transaction.machine(), root, std::nullopt);
    if (!snapshot) return fail(std::move(snapshot).error());
    if (core::is_own_root(*snapshot)) record_root(transaction, root);
  }
  if (tiers.kubepods.empty()) return {};
  if (tiers.top.empty()) record_root(transaction, tiers.kubepods);
  leave_root_to_kubelet(transaction);
  transaction.remake_tree();
  return {};
}

core::EventPlan plan_root_for(Transaction& transaction, const core::PodRecord& record,
                              const Result<std::string>& root) {
  core::TiersRecord& tiers = transaction.tiers();
  if (record.adopted) {
    if (!core::is_taken_over(tiers, record.cgroup)) return {};
    return leave_root_to(transaction, cat("found its pod ", record.cgroup));
  }
  return core::plan_root(
      tiers, *root, [&](const std::string& path) { return transaction.machine().exists(path); });
}

void leave_root_to_kubelet(Transaction& transaction) {
  if (!core::is_kubelets_root(transaction.tiers().kubepods)) return;
  const auto kubelet = cgroup::find_kubelet();
  if (!kubelet) return;
  // The mark of a root that has gone cannot be withdrawn.
  static_cast<void>(transaction.execute(leave_root_to(transaction, *kubelet)).has_value());
}

Status remove_root(Transaction& transaction) {
  core::TiersRecord& tiers = transaction.tiers();
  leave_root_to_kubelet(transaction);
  if (tiers.yielded) {
    core::forget_root(tiers);
    return {};
  }
  const auto done = transaction.execute({core::RemoveTree{tiers.kubepods, tiers.top}});
  return done ? Status{} : fail(done.error());
}

}  // namespace podqos::app
