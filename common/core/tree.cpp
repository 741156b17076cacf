#include "common/core/tree.h"

#include <algorithm>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/counting.h"
#include "common/core/naming.h"
#include "common/core/tier.h"

namespace podqos::core {

namespace {

/// For constant and changeable trees alike.
template <class Trees, class Predicate>
auto* find_if(Trees& trees, const Predicate& fits) {
  const auto found = std::ranges::find_if(trees, fits);
  return found == trees.end() ? nullptr : &*found;
}

auto holder_of(std::string_view cgroup) {
  return [cgroup](const TreeRecord& tree) { return holds(tree, cgroup); };
}

auto rooted_at(std::string_view kubepods) {
  return [kubepods](const TreeRecord& tree) { return tree.kubepods == kubepods; };
}

}  // namespace

bool holds(const TreeRecord& tree, std::string_view cgroup) {
  return is_below(cgroup, tree.kubepods);
}

const TreeRecord* find_tree(const TiersRecord& tiers, std::string_view cgroup) {
  return find_if(tiers.trees, holder_of(cgroup));
}

TreeRecord* find_tree(TiersRecord& tiers, std::string_view cgroup) {
  return find_if(tiers.trees, holder_of(cgroup));
}

const TreeRecord* tree_at(const TiersRecord& tiers, std::string_view kubepods) {
  return find_if(tiers.trees, rooted_at(kubepods));
}

TreeRecord* tree_at(TiersRecord& tiers, std::string_view kubepods) {
  return find_if(tiers.trees, rooted_at(kubepods));
}

bool has_pods(const TiersRecord& tiers, const TreeRecord& tree) {
  return sum_of_own(tree.sums).pods != 0 ||
         std::ranges::any_of(tiers.retained,
                             [&](const RetainedEntry& entry) { return holds(tree, entry.cgroup); });
}

const TreeRecord* tree_in_use(const TiersRecord& tiers, Driver driver) {
  return find_if(tiers.trees, [&](const TreeRecord& tree) {
    return driver_of(tree.kubepods) == driver && has_pods(tiers, tree);
  });
}

std::optional<std::string> root_of_pod(std::string_view pod_cgroup) {
  const auto pod = find_pod_cgroup(pod_cgroup);
  if (!pod) return std::nullopt;
  const std::string_view tier = parent_of(pod->pod_path);
  return std::string{pod->qos_class == QosClass::kGuaranteed ? tier : parent_of(tier)};
}

void count_trees(TiersRecord& tiers, const PodRecords& living) {
  for (const auto& [uid, record] : living) {
    TreeRecord* tree = record.adopted ? nullptr : find_tree(tiers, record.cgroup);
    if (tree != nullptr) add_pod(tree->sums, record);
  }
}

}  // namespace podqos::core
