#include "common/app/eviction.h"

#include <utility>

#include "common/app/reconciler.h"
#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/cgroup/cgroupfs.h"
#include "common/cgroup/node.h"
#include "common/core/cgroups/naming.h"
#include "common/core/cgroups/plan.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/pods/pod_name.h"
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
  const auto stalled = tier.memory_pressure("full");
  if (!stalled) return measure_usage(tier, root, node_memory);
  return {.percent = stalled,
          .text = cat("all its tasks waited for memory ", *stalled, " % of the time")};
}

/// Whether the last eviction is less than eviction.interval ago.
bool is_soon(const core::NodeState& state, const core::Settings& settings, BootSeconds now) {
  return state.eviction &&
         now.value() - state.eviction->at.value() < settings.eviction.interval_seconds;
}

/// A tier's pods with running containers.
struct Candidates {
  std::vector<core::PodRecord> records;
  std::vector<std::vector<core::DyingContainer>> containers;  ///< of each of them
  std::vector<core::MemoryUse> uses;
};

/// The running containers in the pod's cgroup; empty for a pod whose containers have ended, of
/// which its engine has not told yet.
std::vector<core::DyingContainer> running_in(cgroup::Machine& machine, const core::PodRecord& pod) {
  std::vector<core::DyingContainer> running;
  for (const core::ContainerRecord& container : pod.containers) {
    const bool runs = container.state == core::ContainerState::kLive &&
                      machine.is_alive(container.pid, container.start_time);
    if (runs && is_below(container.cgroup, pod.cgroup))
      running.push_back(
          {.cgroup = container.cgroup, .init = {container.pid, container.start_time}});
  }
  return running;
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
    auto running = running_in(transaction.machine(), pod);
    if (!used || running.empty()) continue;
    found.containers.push_back(std::move(running));
    found.uses.push_back({.request = pod.capped_request.memory,
                          .usage = *used,
                          .priority = pod.pod.priority.value_or(0),
                          .critical = core::is_critical(pod.pod)});
    found.records.push_back(std::move(pod));
  }
  return found;
}

/// Goes on with what an earlier process has begun.
Status finish_earlier(const core::Settings& settings, Log& log, const Timeouts& timeouts) {
  PODQOS_ASSIGN(auto transaction, Transaction::open_existing(settings, log, timeouts));
  if (!transaction) return {};
  PODQOS_TRY(finish_eviction(*transaction));
  return transaction->finish();
}

std::string describe_eviction(const core::PodRecord& pod, const core::MemoryUse& use,
                              const PressedTier& tier) {
  return cat("evicted ", core::name_of(pod), " from ", tier.cgroup, ": ", tier.measured,
             "; the pod used ", format_amount(use.usage), ", requests ", format_amount(use.request),
             " and has priority ", use.priority);
}

}  // namespace

std::optional<PressedTier> Evictor::find_pressed(cgroup::Machine& machine,
                                                 const core::NodeState& state,
                                                 const core::Settings& settings, Bytes node_memory,
                                                 BootSeconds now) {
  // What was measured before an eviction, or soon after it, says nothing of what is left: the
  // kernel's averages lag.
  if (is_soon(state, settings, now)) {
    periods_.clear();
    return std::nullopt;
  }
  std::map<std::string, core::PressurePeriod> periods;
  std::optional<PressedTier> pressed;
  for (const auto qos_class : {core::QosClass::kBestEffort, core::QosClass::kBurstable}) {
    const auto& threshold = settings.eviction.of(qos_class);
    if (!threshold) continue;
    for (const core::TreeRecord& tree : state.trees) {
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

Result<bool> evict_from(Transaction& transaction, const PressedTier& tier) {
  PODQOS_TRY(reconcile_interrupted(transaction));
  core::NodeState& state = transaction.node();
  if (is_soon(state, transaction.settings(), transaction.now())) return false;
  PODQOS_ASSIGN(auto candidates, candidates_in(transaction, tier.cgroup));
  const auto victim = core::find_victim(candidates.uses);
  if (!victim) {
    transaction.log().info(cat(tier.cgroup, ": ", tier.measured,
                               "; no pod is evicted, as each is critical or within its request"));
    return false;
  }
  const core::PodRecord& pod = candidates.records[*victim];
  state.eviction = {.at = transaction.now(), .killing = std::move(candidates.containers[*victim])};
  PODQOS_TRY(transaction.store().write_node());
  PODQOS_TRY(finish_eviction(transaction));
  core::Event event = core::event_of(core::EventKind::kEvicted, pod);
  event.text = describe_eviction(pod, candidates.uses[*victim], tier);
  transaction.event(core::LogLevel::kWarning, std::move(event), "");
  return true;
}

Status finish_eviction(Transaction& transaction) {
  auto& eviction = transaction.node().eviction;
  if (!eviction) return {};
  core::Plan plan;
  for (const auto& [cgroup, init] : eviction->killing) {
    if (transaction.machine().is_alive(init.pid, init.start_time))
      plan.emplace_back(core::KillProcesses{.path = cgroup});
  }
  PODQOS_TRY(transaction.execute(plan));
  eviction->killing.clear();
  return {};
}

Result<std::optional<core::QosClass>> Evictor::check(const core::Settings& settings, Log& log,
                                                     const Timeouts& timeouts) {
  const core::Eviction& eviction = settings.eviction;
  const bool watches = settings.enabled && (eviction.burstable || eviction.besteffort);
  if (!watches && finished_) return std::nullopt;
  PODQOS_ASSIGN(auto records,
                store::Store::open({.path = settings.state_dir}, store::Opening::kReadUnlocked));
  const auto& last = records.node().eviction;
  if (last && !last->killing.empty()) PODQOS_TRY(finish_earlier(settings, log, timeouts));
  finished_ = true;
  if (!watches || records.node().trees.empty()) return std::nullopt;
  PODQOS_ASSIGN(auto cgroups, cgroup::Cgroupfs::open({.access = cgroup::Access::kRead}));
  PODQOS_ASSIGN(const auto capacity, cgroup::node_capacity(settings));
  const BootSeconds now{sys::seconds_since_boot()};
  const auto tier = find_pressed(cgroups, records.node(), settings, capacity.memory, now);
  if (!tier) return std::nullopt;
  PODQOS_ASSIGN(auto transaction, Transaction::open_existing(settings, log, timeouts));
  if (!transaction) return std::nullopt;
  PODQOS_ASSIGN(const bool evicted, evict_from(*transaction, *tier));
  end_period(*tier);
  PODQOS_TRY(transaction->finish_if_changed());
  return evicted ? std::optional{tier->qos_class} : std::nullopt;
}

}  // namespace podqos::app
