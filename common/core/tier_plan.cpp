#include "common/core/tier_plan.h"

#include <algorithm>

#include "common/core/pod_plan.h"

namespace podqos::core {

TierValues wanted_tiers(const TierSums& tree, const TierSums& node, const Settings& settings,
                        const NodeCapacity& capacity) {
  TierValues values =
      tier_values(node, {.reserve_percent = settings.reserve_memory_percent,
                         .allocatable_memory = allocatable_memory(settings, capacity)});
  values.burstable.cpu_shares = tier_values(tree, {}).burstable.cpu_shares;
  return values;
}

TierValues decide_tier_write(const TreeRecord& record, TierValues wanted, Tree tree,
                             const TierSnapshot& snapshot, const Settings& settings) {
  const auto decide = [&](CgroupValues& tier, QosClass qos_class,
                          std::optional<std::int64_t> io_weight) {
    const std::string path = tier_path(record.kubepods, qos_class);
    if (tier.memory_limit) {
      tier.memory_limit =
          bounded_tier_limit(*tier.memory_limit, snapshot.usage(path), settings.tier_memory_floor);
    }
    if (tree == Tree::kAsItWas) return;
    // Remove limits of a reservation (qosReserved) that has been turned off.
    if (!tier.memory_limit) tier.memory_limit = Bytes{-1};
    tier.io_weight = io_weight;
    if (tree == Tree::kToMake && !io_weight && snapshot.has_io_weight(path))
      tier.io_weight = kDefaultIoWeight;
  };
  decide(wanted.burstable, QosClass::kBurstable, settings.io_weight.burstable);
  decide(wanted.besteffort, QosClass::kBestEffort, settings.io_weight.besteffort);
  CgroupValues& root = wanted.root;
  if (root.memory_limit) {
    root.memory_limit = bounded_tier_limit(*root.memory_limit, snapshot.usage(record.kubepods),
                                           settings.tier_memory_floor);
  }
  // Remove limits of an enforceNodeAllocatable that has been turned off.
  if (tree == Tree::kToMake && !root.memory_limit) root.memory_limit = Bytes{-1};
  if (tree == Tree::kToMake && !root.pids_limit) root.pids_limit = -1;
  // Constant: written when the tier was created.
  if (tree == Tree::kAsItWas) wanted.besteffort.cpu_shares.reset();
  return wanted;
}

Bytes excess_of_limit(Bytes wanted, Bytes usage, const Settings& settings) {
  const Bytes least = std::max(wanted, settings.tier_memory_floor);
  const Bytes held = bounded_tier_limit(wanted, usage, settings.tier_memory_floor);
  return Bytes{std::max<std::int64_t>(held.value() - least.value(), 0)};
}

}  // namespace podqos::core
