#include "common/core/events/tier_plan.h"

#include <algorithm>

#include "common/core/cgroups/pod_plan.h"

namespace podqos::core {

TierValues wanted_tiers(const TierSums& tree, const TierSums& node, const Settings& settings,
                        const NodeCapacity& capacity) {
  TierValues values =
      tier_values(node, {.reserve_percent = settings.reserve_memory_percent,
                         .allocatable_memory = allocatable_memory(settings, capacity)});
  values.burstable.cpu_shares = tier_values(tree, {}).burstable.cpu_shares;
  return values;
}

TierValues decide_tier_write(TierValues wanted, TreeState tree, const TierSnapshots& snapshots,
                             const Settings& settings) {
  const auto hold_above_usage = [&](CgroupValues& tier, const TierSnapshot& snapshot) {
    if (tier.memory_limit) {
      tier.memory_limit =
          bounded_tier_limit(*tier.memory_limit, snapshot.usage, settings.tier_memory_floor);
    }
  };
  const auto decide = [&](CgroupValues& tier, const TierSnapshot& snapshot,
                          std::optional<std::int64_t> io_weight) {
    hold_above_usage(tier, snapshot);
    if (tree == TreeState::kUnchanged) return;
    // Remove limits of a reservation (qosReserved) that has been turned off.
    if (!tier.memory_limit) tier.memory_limit = Bytes{-1};
    tier.io_weight = io_weight;
    if (tree == TreeState::kMissing && !io_weight && snapshot.has_io_weight)
      tier.io_weight = kDefaultIoWeight;
  };
  decide(wanted.burstable, snapshots.burstable, settings.io_weight.burstable);
  decide(wanted.besteffort, snapshots.besteffort, settings.io_weight.besteffort);
  CgroupValues& root = wanted.root;
  hold_above_usage(root, snapshots.root);
  // Remove limits of an enforceNodeAllocatable that has been turned off.
  if (tree == TreeState::kMissing && !root.memory_limit) root.memory_limit = Bytes{-1};
  if (tree == TreeState::kMissing && !root.pids_limit) root.pids_limit = -1;
  // Constant: written when the tier was created.
  if (tree == TreeState::kUnchanged) wanted.besteffort.cpu_shares.reset();
  return wanted;
}

Bytes excess_of_limit(Bytes wanted, Bytes usage, const Settings& settings) {
  const Bytes least = std::max(wanted, settings.tier_memory_floor);
  const Bytes held = bounded_tier_limit(wanted, usage, settings.tier_memory_floor);
  return Bytes{std::max<std::int64_t>(held.value() - least.value(), 0)};
}

}  // namespace podqos::core
