#include "common/core/root_limits.h"

#include <algorithm>

#include "common/core/tier.h"

namespace podqos::core {

CgroupValues root_limits(const TiersRecord& tiers, const TreeRecord& tree, const Settings& settings,
                         const NodeCapacity& capacity) {
  CgroupValues values;
  if (!settings.enforce_node_allocatable) return values;
  const Bytes allocatable = allocatable_memory(settings, capacity);
  if (allocatable.value() > 0) {
    const std::int64_t in_other_trees =
        saturating_sub(sum_of_own(tiers.sums).memory.value(), sum_of_own(tree.sums).memory.value());
    const std::int64_t outside = saturating_add(tiers.sums.adopted.memory.value(), in_other_trees);
    values.memory_limit =
        Bytes{std::max<std::int64_t>(saturating_sub(allocatable.value(), outside), 0)};
  }
  if (capacity.pids > 0) values.pids_limit = capacity.pids;
  return values;
}

}  // namespace podqos::core
