#include "common/core/events/decide_convergence.h"

#include <algorithm>

#include "common/core/cgroups/naming.h"

namespace podqos::core {

namespace {

/// The kernel adds up the time that tasks have waited every two seconds (kernel/sched/psi.c,
/// PSI_FREQ).
constexpr Micros kPressurePeriod{2'000'000};

bool suffers(const ConvergenceSnapshot& snapshot) {
  const Micros elapsed = std::max(snapshot.elapsed, kPressurePeriod);
  return snapshot.refaulted > kRefaults ||
         snapshot.waited.value() > mul_div(elapsed.value(), kWaitingPercent, kPercent);
}

}  // namespace

std::vector<HeldLimit> held_limits(const std::string& kubepods, const TierValues& wanted,
                                   const TierValues& written, const Settings& settings) {
  std::vector<HeldLimit> held;
  const auto add = [&](QosClass qos_class, const CgroupValues& rule, const CgroupValues& value) {
    if (!rule.memory_limit || !value.memory_limit) return;
    const Bytes goal = std::max(*rule.memory_limit, settings.tier_memory_floor);
    if (*value.memory_limit > goal)
      held.push_back({tier_path(kubepods, qos_class), goal, *value.memory_limit});
  };
  add(QosClass::kBestEffort, wanted.besteffort, written.besteffort);
  add(QosClass::kBurstable, wanted.burstable, written.burstable);
  add(QosClass::kGuaranteed, wanted.root, written.root);
  return held;
}

Bytes gap_of_limit(Bytes limit, Bytes rule, Bytes floor) {
  return rest_of(limit, std::max(rule, floor));
}

ConvergenceStep decide_convergence(const ConvergenceSnapshot& snapshot) {
  using Action = ConvergenceStep::Action;
  const Bytes goal = snapshot.goal;
  if (snapshot.limit && *snapshot.limit <= goal) return {};
  const Bytes above_usage = bounded_tier_limit(goal, snapshot.usage, goal);
  if (!snapshot.limit || above_usage == goal || above_usage + kLeastStep <= *snapshot.limit)
    return {.action = Action::kLower, .amount = above_usage};
  if (snapshot.pauses || suffers(snapshot)) return {.action = Action::kWait};
  if (snapshot.reclaims) {
    const Bytes excess = snapshot.usage + kTierMemoryMargin - goal;
    return {.action = Action::kReclaim, .amount = std::min(excess, kReclaimedPerStep)};
  }
  if (snapshot.clean_cache >= snapshot.cut + kTierMemoryMargin)
    return {.action = Action::kLower, .amount = std::max(goal, snapshot.usage - snapshot.cut)};
  return {.action = Action::kWait};
}

std::int64_t next_pause(std::int64_t last) {
  constexpr std::int64_t kLongest = 8;
  return std::clamp<std::int64_t>(2 * last, 1, kLongest);
}

Bytes next_cut(Bytes last, bool is_refused) {
  const Bytes next{is_refused ? last.value() / 4 : last.value() * 2};
  return std::clamp(next, kLeastStep, kCutPerStep);
}

}  // namespace podqos::core
