#include "common/core/events/decide_convergence.h"

#include <algorithm>

#include "common/core/cgroups/naming.h"
#include "common/core/events/cgroup_write.h"
#include "common/core/pods/counting.h"

namespace podqos::core {

std::vector<LimitRule> limit_rules(const NodeState& node, const Settings& settings,
                                   const NodeCapacity& capacity) {
  std::vector<LimitRule> rules;
  for (const TreeRecord& tree : node.trees) {
    if (!has_pods(node, tree)) continue;
    const auto add = [&](QosClass qos_class, const CgroupValues& rule) {
      if (!rule.memory_limit) return;
      rules.push_back({.cgroup = tier_path(tree.kubepods, qos_class),
                       .goal = std::max(*rule.memory_limit, settings.tier_memory_floor)});
    };
    const TierValues tiers = wanted_tiers(tree.sums, node.sums, settings, capacity);
    add(QosClass::kBestEffort, tiers.besteffort);
    add(QosClass::kBurstable, tiers.burstable);
    add(QosClass::kGuaranteed, root_limits(node, tree, settings, capacity));
  }
  return rules;
}

ConvergenceStep decide_convergence(const ConvergenceSnapshot& snapshot) {
  using Action = ConvergenceStep::Action;
  const Bytes goal = snapshot.goal;
  if (snapshot.limit && *snapshot.limit <= goal) return {};
  const Bytes above_usage = bounded_tier_limit(goal, snapshot.usage, goal);
  if (!snapshot.limit || above_usage == goal || above_usage + kLeastStep <= *snapshot.limit)
    return {.action = Action::kLower, .amount = above_usage};
  if (snapshot.waiting_percent > kWaitingPercent) return {.action = Action::kWait};
  if (snapshot.reclaims) {
    const Bytes excess = snapshot.usage + kTierMemoryMargin - goal;
    return {.action = Action::kReclaim, .amount = std::min(excess, kReclaimedPerStep)};
  }
  if (snapshot.clean_cache >= kCutPerStep + kTierMemoryMargin)
    return {.action = Action::kLower, .amount = std::max(goal, snapshot.usage - kCutPerStep)};
  return {.action = Action::kWait};
}

}  // namespace podqos::core
