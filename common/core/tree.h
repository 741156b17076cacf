#pragma once

#include <algorithm>
#include <string_view>

#include "common/base/path.h"
#include "common/core/naming.h"
#include "common/core/record.h"

namespace podqos::core {

/// The tree that a cgroup lies in; nullptr if it lies in none.
/// @param tiers  constant or changeable, as the tree is then
template <class Tiers>
[[nodiscard]] auto* find_tree(Tiers& tiers, std::string_view cgroup) {
  const auto found = std::ranges::find_if(
      tiers.trees, [&](const TreeRecord& tree) { return is_below(cgroup, tree.kubepods); });
  return found == tiers.trees.end() ? nullptr : &*found;
}
/// The tree with this root; nullptr if there is none.
template <class Tiers>
[[nodiscard]] auto* tree_at(Tiers& tiers, std::string_view kubepods) {
  const auto found = std::ranges::find(tiers.trees, kubepods, &TreeRecord::kubepods);
  return found == tiers.trees.end() ? nullptr : &*found;
}

/// True if a pod of the tree counts or is retained: then its root and tiers are in use.
[[nodiscard]] bool has_pods(const TiersRecord& tiers, const TreeRecord& tree);
/// The tree with pods of this driver, which new ones join; nullptr if there is none.
[[nodiscard]] const TreeRecord* tree_in_use(const TiersRecord& tiers, Driver driver);

/// Adds pods to the sums of their trees.
void count_trees(TiersRecord& tiers, const PodRecords& living);

}  // namespace podqos::core
