#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/path.h"
#include "common/core/cgroups/naming.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/kubernetes/tier.h"
#include "common/core/record.h"

namespace podqos::core {

/// The pod with its engine's sums, if there are any, as pod-level resources: the pod that its
/// class, its request and the values of its cgroup are for.
[[nodiscard]] Pod whole_pod(Pod pod, const std::optional<EngineSums>& sums);
/// CPU and memory that the whole pod requests; `pods` is 1.
[[nodiscard]] TierSum amounts_requested(const PodRecord& record);

/// Removes the resources of a container that has ended, and is in the record, from a pod whose
/// containers are not all known. The pod's requests and limits stay as high as the highest sum of
/// containers that ran at the same time: engines do not say which containers are init containers,
/// but that equals Kubernetes' sum with them, and what still runs may use what the limit allowed. A
/// container that is still pending never started and leaves nothing. Does nothing for complete
/// pods.
void forget_container(PodRecord& record, const ContainerRecord& ended);

/// The tree that a cgroup lies in; nullptr if it lies in none.
/// @param state  constant or changeable, as the tree is then
template <class State>
[[nodiscard]] auto* find_tree(State& state, std::string_view cgroup) {
  const auto found = std::ranges::find_if(
      state.trees, [&](const TreeRecord& tree) { return is_below(cgroup, tree.kubepods); });
  return found == state.trees.end() ? nullptr : &*found;
}
/// The tree with this root; nullptr if there is none.
template <class State>
[[nodiscard]] auto* tree_at(State& state, std::string_view kubepods) {
  const auto found = std::ranges::find(state.trees, kubepods, &TreeRecord::kubepods);
  return found == state.trees.end() ? nullptr : &*found;
}

/// What tells the pods of a tree in rows: 0 of none.
[[nodiscard]] std::uint64_t tree_key(std::string_view kubepods);
/// True if a pod of the tree is recorded, even a released one whose cgroup remains: then its root
/// and tiers are in use.
[[nodiscard]] bool has_pods(const NodeState& state, const TreeRecord& tree);
/// The tree with pods of this driver, which new ones join; nullptr if there is none.
[[nodiscard]] const TreeRecord* tree_in_use(const NodeState& state, Driver driver);

/// What a pod requests, whatever of it counts: its capped request; nothing if it is BestEffort.
[[nodiscard]] TierSum requested_by(const PodRecord& record);

/// The row of a pod that nothing is changing.
[[nodiscard]] PodRow row_of(const PodRecord& record);
/// The row of a pod; nullptr if it has none.
[[nodiscard]] PodRow* find_row(NodeState& state, std::string_view uid);
/// Uids of all pods that have one.
[[nodiscard]] std::vector<std::string> uids_of(const NodeState& state);
/// Computes the sums of node and trees from the rows.
void sum_up(NodeState& state);
/// The node's sums of all pods but this one.
[[nodiscard]] TierSums sums_beside(const NodeState& state, std::string_view uid);

}  // namespace podqos::core
