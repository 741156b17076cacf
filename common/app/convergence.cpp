#include "common/app/convergence.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/app/reconciler.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/cgroup/cgroupfs.h"
#include "common/cgroup/node.h"
#include "common/cgroup/value.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/store/store.h"

namespace podqos::app {

namespace {

using core::Controller;
using Action = core::ConvergenceStep::Action;

constexpr const char* kReclaimFile = "memory.reclaim";
/// A write of that file returns after so much, or when no more can be had.
constexpr Bytes kPiece{4LL << 20U};
constexpr std::chrono::milliseconds kReclaimTime{100};

core::ConvergenceStep next_step(cgroup::Machine& machine, const core::LimitRule& rule) {
  const cgroup::CgroupView view{machine, rule.cgroup};
  const auto usage = view.memory_usage();
  // It has been removed, or has no memory controller.
  if (!usage) return {};
  core::ConvergenceSnapshot snapshot{
      .goal = rule.goal, .limit = view.memory_limit(), .usage = *usage};
  if (snapshot.limit && *snapshot.limit <= rule.goal) return {};
  snapshot.waiting_percent = view.memory_pressure("some").value_or(0);
  if (machine.layout_without_hugepages().memory == core::CgroupVersion::kV2) {
    // It can only be written: reading it is refused where it exists.
    const auto file = machine.read(rule.cgroup, Controller::kMemory, kReclaimFile);
    snapshot.reclaims = file || file.error().code != ErrorCode::kNotFound;
  } else {
    const auto stat = machine.read(rule.cgroup, Controller::kMemory, "memory.stat").value_or("");
    const auto bytes = [&](const char* key) {
      return Bytes{cgroup::find_key(stat, key).value_or(0)};
    };
    snapshot.clean_cache = rest_of(bytes("total_inactive_file") + bytes("total_active_file"),
                                   bytes("total_dirty") + bytes("total_writeback"));
  }
  return core::decide_convergence(snapshot);
}

void reclaim_from(cgroup::Machine& machine, const std::string& cgroup, Bytes amount,
                  const sys::Clock& clock) {
  const auto end = clock.now() + kReclaimTime;
  while (amount > Bytes{0} && clock.now() < end) {
    const Bytes piece = std::min(amount, kPiece);
    amount = amount - piece;
    // EAGAIN: less could be reclaimed.
    const auto asked = machine.execute({core::WriteFile{.path = cgroup,
                                                        .controller = Controller::kMemory,
                                                        .file = kReclaimFile,
                                                        .value = std::to_string(piece.value()),
                                                        .reason = "lower the tier's limit",
                                                        .on_refusal = core::OnRefusal::kIgnore}});
    if (!asked || !asked->ignored.empty()) return;
  }
}

}  // namespace

ConvergenceRound reclaim(cgroup::Machine& machine, const std::vector<core::LimitRule>& rules,
                         const sys::Clock& clock, sys::Clock::TimePoint deadline) {
  ConvergenceRound round;
  for (const core::LimitRule& rule : rules) {
    if (clock.now() >= deadline) break;
    core::ConvergenceStep step = next_step(machine, rule);
    if (step.action == Action::kReclaim) {
      reclaim_from(machine, rule.cgroup, step.amount, clock);
      ++round.reclaimed;
      step = next_step(machine, rule);
    }
    if (step.action == Action::kLower)
      ++round.lowerable;
    else if (step.action != Action::kNone)
      ++round.pauses;
  }
  return round;
}

Result<ConvergenceRound> lower(Transaction& transaction, ConvergenceRound round) {
  PODQOS_TRY(reconcile_interrupted(transaction));
  for (const auto& rule :
       core::limit_rules(transaction.node(), transaction.settings(), transaction.capacity())) {
    const core::ConvergenceStep step = next_step(transaction.machine(), rule);
    if (step.action != Action::kLower) continue;
    const std::string context = cat("cgroup ", rule.cgroup, ": ");
    const bool is_first = !cgroup::CgroupView{transaction.machine(), rule.cgroup}.memory_limit();
    const auto done = transaction.execute(core::plan_memory_limit(
        rule.cgroup, step.amount, transaction.machine().layout_without_hugepages()));
    if (!done) {
      ++round.pauses;
      // One for which cgroup v1 could not make room is left to the next round.
      const ErrorCode code = done.error().code;
      if (code != ErrorCode::kBusy && code != ErrorCode::kTimeout)
        transaction.log().error(cat(context, "memory limit not lowered: ", done.error().message));
      continue;
    }
    ++round.lowered;
    if (step.amount > rule.goal || is_first) continue;
    core::Event event{.kind = core::EventKind::kCorrected, .cgroup = rule.cgroup};
    event.text =
        cat("memory limit has come down to ", format_amount(rule.goal), ", as the rule says");
    transaction.event(core::LogLevel::kInfo, std::move(event), context);
  }
  PODQOS_TRY(transaction.finish());
  return round;
}

Result<ConvergenceRound> converge(const core::Settings& settings, Log& log,
                                  const Timeouts& timeouts) {
  if (!cgroup::owns_host()) return {};
  PODQOS_ASSIGN(auto records,
                store::Store::open({.path = settings.state_dir}, store::Opening::kReadUnlocked));
  PODQOS_ASSIGN(const auto capacity, cgroup::node_capacity(settings));
  const auto rules = core::limit_rules(records.node(), settings, capacity);
  if (rules.empty()) return {};
  PODQOS_ASSIGN(auto machine, cgroup::Cgroupfs::open());
  ConvergenceRound round = reclaim(machine, rules, *timeouts.clock, timeouts.deadline);
  if (round.lowerable != 0) {
    PODQOS_ASSIGN(auto transaction, Transaction::open_existing(settings, log, timeouts));
    if (!transaction) return {};
    PODQOS_ASSIGN(round, lower(*transaction, std::move(round)));
  }
  for (const core::LimitRule& rule : rules) {
    const auto limit = cgroup::CgroupView{machine, rule.cgroup}.memory_limit();
    if (limit && *limit > rule.goal)
      round.above.push_back(cat("cgroup ", rule.cgroup, ": memory limit is ",
                                format_amount(*limit - rule.goal),
                                " above the rule because its usage is"));
  }
  return round;
}

}  // namespace podqos::app
