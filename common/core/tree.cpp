#include "common/core/tree.h"

#include <algorithm>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/counting.h"
#include "common/core/naming.h"
#include "common/core/tier.h"

namespace podqos::core {

bool has_pods(const TiersRecord& tiers, const TreeRecord& tree) {
  return sum_of_own(tree.sums).pods != 0 ||
         std::ranges::any_of(tiers.retained, [&](const RetainedEntry& entry) {
           return is_below(entry.cgroup, tree.kubepods);
         });
}

const TreeRecord* tree_in_use(const TiersRecord& tiers, Driver driver) {
  const auto found = std::ranges::find_if(tiers.trees, [&](const TreeRecord& tree) {
    return driver_of(tree.kubepods) == driver && has_pods(tiers, tree);
  });
  return found == tiers.trees.end() ? nullptr : &*found;
}

void count_trees(TiersRecord& tiers, const PodRecords& living) {
  for (const auto& [uid, record] : living) {
    TreeRecord* tree = record.adopted ? nullptr : find_tree(tiers, record.cgroup);
    if (tree != nullptr) add_pod(tree->sums, record);
  }
}

}  // namespace podqos::core
