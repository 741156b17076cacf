#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/core/naming.h"
#include "common/core/record.h"

namespace podqos::core {

/// True if the cgroup lies below the tree's root.
[[nodiscard]] bool holds(const TreeRecord& tree, std::string_view cgroup);
/// The tree that a cgroup lies in; nullptr if it lies in none.
[[nodiscard]] const TreeRecord* find_tree(const TiersRecord& tiers, std::string_view cgroup);
[[nodiscard]] TreeRecord* find_tree(TiersRecord& tiers, std::string_view cgroup);
/// The tree with this root; nullptr if there is none.
[[nodiscard]] const TreeRecord* tree_at(const TiersRecord& tiers, std::string_view kubepods);
[[nodiscard]] TreeRecord* tree_at(TiersRecord& tiers, std::string_view kubepods);

/// True if a pod of the tree counts or is retained: then its root and tiers are in use.
[[nodiscard]] bool has_pods(const TiersRecord& tiers, const TreeRecord& tree);
/// The tree with pods of this driver, which new ones join; nullptr if there is none.
[[nodiscard]] const TreeRecord* tree_in_use(const TiersRecord& tiers, Driver driver);

/// The root of a pod's cgroup: "/kubepods" for "/kubepods/burstable/pod42"; nullopt if the path is
/// not a pod's.
[[nodiscard]] std::optional<std::string> root_of_pod(std::string_view pod_cgroup);

/// Adds pods to the sums of their trees.
void count_trees(TiersRecord& tiers, const PodRecords& living);

}  // namespace podqos::core
