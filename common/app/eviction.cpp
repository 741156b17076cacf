#include "common/app/eviction.h"

#include <utility>

#include "common/app/reconcile.h"
#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/cgroup/cgroupfs.h"
#include "common/cgroup/node.h"
#include "common/core/cgroups/naming.h"
#include "common/core/cgroups/oomd.h"
#include "common/core/cgroups/plan.h"
#include "common/core/events/admission.h"
#include "common/store/store.h"
#include "common/sys/clock.h"

namespace podqos::app {

namespace {

/// Memory pressure in a tier.
struct Measured {
  std::optional<std::int64_t> percent;
  std::string text;  ///< for the log
};

/// How much of the memory that a tier may use its working set is.
Measured measure_usage(const cgroup::CgroupView& tier, const cgroup::CgroupView& root,
                       Bytes node_memory) {
  Bytes most = node_memory;
  for (const auto& limit : {tier.memory_limit(), root.memory_limit()}) {
    if (limit && *limit < most) most = *limit;
  }
  const auto used = tier.working_set();
  if (!used || most <= Bytes{0}) return {};
  const std::int64_t percent = mul_div(used->value(), kPercent, most.value());
  return {.percent = percent,
          .text = cat("its working set was ", percent, " % of ", format_amount(most))};
}

Measured measure(const cgroup::CgroupView& tier, const cgroup::CgroupView& root,
                 Bytes node_memory) {
  const auto stalled = tier.memory_stalled_percent();
  if (!stalled) return measure_usage(tier, root, node_memory);
  return {.percent = stalled,
          .text = cat("all its tasks waited for memory ", *stalled, " % of the time")};
}

/// A tier's pods with running containers.
struct Candidates {
  std::vector<core::PodRecord> records;
  std::vector<core::Plan> kills;  ///< of each of them: what ends its containers
  std::vector<core::MemoryUse> uses;
};

/// Ends the running containers in the pod's cgroup; empty for a pod whose containers have ended, of
/// which its engine has not told yet.
core::Plan plan_kill(cgroup::Machine& machine, const core::PodRecord& pod) {
  core::Plan plan;
  for (const core::ContainerRecord& container : pod.containers) {
    const bool runs = container.state == core::ContainerState::kLive &&
                      machine.is_alive(container.pid, container.start_time);
    if (runs && is_below(container.cgroup, pod.cgroup))
      plan.emplace_back(core::KillProcesses{.path = container.cgroup});
  }
  return plan;
}

Result<Candidates> candidates_in(Transaction& transaction, const std::string& tier) {
  Candidates found;
  PODQOS_ASSIGN(const auto uids, transaction.store().pod_uids());
  for (const std::string& uid : uids) {
    auto record = transaction.store().pod(uid);
    // What cannot be read now is for a reconciliation.
    if (!record || !*record) continue;
    core::PodRecord& pod = **record;
    if (pod.kubelets_own || pod.released_at || parent_of(pod.cgroup) != tier) continue;
    const auto used = cgroup::CgroupView{transaction.machine(), pod.cgroup}.working_set();
    core::Plan kill = plan_kill(transaction.machine(), pod);
    if (!used || kill.empty()) continue;
    found.kills.push_back(std::move(kill));
    found.uses.push_back({.request = pod.capped_request.memory,
                          .usage = *used,
                          .priority = pod.pod.priority.value_or(0),
                          .critical = core::is_critical(pod.pod)});
    found.records.push_back(std::move(pod));
  }
  return found;
}

std::string describe_eviction(const core::PodRecord& pod, const core::MemoryUse& use,
                              const PressedTier& tier) {
  return cat("evicted ", core::name_of(pod.pod), " from ", tier.cgroup, ": ", tier.measured,
             "; the pod used ", format_amount(use.usage), ", requests ", format_amount(use.request),
             " and has priority ", use.priority);
}

}  // namespace

std::optional<PressedTier> Evictor::find_pressed(cgroup::Machine& machine,
                                                 const std::vector<core::TreeRecord>& trees,
                                                 const core::Settings& settings, Bytes node_memory,
                                                 BootSeconds now) {
  // What was measured before an eviction, or soon after it, says nothing of what is left: the
  // kernel's averages lag.
  if (last_ && now.value() - last_->value() < settings.eviction.interval_seconds) {
    periods_.clear();
    return std::nullopt;
  }
  std::map<std::string, core::PressurePeriod> periods;
  std::optional<PressedTier> pressed;
  for (const auto qos_class : {core::QosClass::kBestEffort, core::QosClass::kBurstable}) {
    const auto& threshold = settings.eviction.of(qos_class);
    if (!threshold) continue;
    for (const core::TreeRecord& tree : trees) {
      if (core::is_watched_by_oomd(tree.kubepods, machine.layout_without_hugepages())) continue;
      std::string cgroup = core::tier_path(tree.kubepods, qos_class);
      const Measured measured = measure({machine, cgroup}, {machine, tree.kubepods}, node_memory);
      core::PressurePeriod& period = periods[cgroup] = periods_[cgroup];
      if (!period.observe(measured.percent, now, *threshold) || pressed) continue;
      pressed = {.qos_class = qos_class,
                 .cgroup = std::move(cgroup),
                 .measured = cat(measured.text, ", and at least ", threshold->percent, " % for ",
                                 threshold->seconds, " s")};
    }
  }
  periods_ = std::move(periods);
  return pressed;
}

void Evictor::note(const PressedTier& tier, bool evicted, BootSeconds now) {
  periods_[tier.cgroup].end();
  if (evicted) last_ = now;
}

Result<bool> evict_from(Transaction& transaction, const PressedTier& tier) {
  PODQOS_TRY(recover(transaction));
  PODQOS_ASSIGN(const auto candidates, candidates_in(transaction, tier.cgroup));
  const auto victim = core::find_victim(candidates.uses);
  if (!victim) {
    transaction.log().info(cat(tier.cgroup, ": ", tier.measured,
                               "; no pod is evicted, as each is critical or within its request"));
    return false;
  }
  const core::PodRecord& pod = candidates.records[*victim];
  PODQOS_TRY(transaction.execute(candidates.kills[*victim]));
  transaction.log().warning(describe_eviction(pod, candidates.uses[*victim], tier));
  return true;
}

Result<std::optional<core::QosClass>> Evictor::check(const core::Settings& settings, Log& log,
                                                     const Timeouts& timeouts) {
  const core::Eviction& eviction = settings.eviction;
  if (!settings.enabled || (!eviction.burstable && !eviction.besteffort)) return std::nullopt;
  PODQOS_ASSIGN(auto records,
                store::Store::open({.path = settings.state_dir}, store::Opening::kReadUnlocked));
  if (records.tiers().trees.empty()) return std::nullopt;
  PODQOS_ASSIGN(auto cgroups, cgroup::Cgroupfs::open({.access = cgroup::Access::kRead}));
  PODQOS_ASSIGN(const auto capacity, cgroup::node_capacity(settings));
  const BootSeconds now{sys::seconds_since_boot()};
  const auto tier = find_pressed(cgroups, records.tiers().trees, settings, capacity.memory, now);
  if (!tier) return std::nullopt;
  PODQOS_ASSIGN(auto transaction, Transaction::open_existing(settings, log, timeouts));
  if (!transaction) return std::nullopt;
  PODQOS_ASSIGN(const bool evicted, evict_from(*transaction, *tier));
  note(*tier, evicted, now);
  PODQOS_TRY(transaction->finish_if_changed());
  return evicted ? std::optional{tier->qos_class} : std::nullopt;
}

}  // namespace podqos::app
