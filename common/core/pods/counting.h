#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

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

/// True if a pod of the tree counts or is to be revisited: then its root and tiers are in use.
[[nodiscard]] bool has_pods(const TiersRecord& tiers, const TreeRecord& tree);
/// The tree with pods of this driver, which new ones join; nullptr if there is none.
[[nodiscard]] const TreeRecord* tree_in_use(const TiersRecord& tiers, Driver driver);

/// What a pod requests, whatever of it counts: its capped request; nothing if it is BestEffort.
[[nodiscard]] TierSum requested_by(const PodRecord& record);

/// Adds a pod's counted requests to the sum of its tier, and what it requests to that of all, or
/// both to the sum of a kubelet's pods: in the sums of the node and of the pod's tree.
void add_pod(TiersRecord& tiers, const PodRecord& record);
/// Subtracts them again. Sums never become negative; those that lack the pod lose nothing.
void remove_pod(TiersRecord& tiers, const PodRecord& record);
/// The node's sums of all other pods.
/// @param pod  the pod as currently included in the sums; nullopt if it is new
[[nodiscard]] TierSums sums_beside(const TiersRecord& tiers, const std::optional<PodRecord>& pod);

/// Replaces the pod in the sums of node and tree: subtracts `before`, adds `record`. A pod that
/// counts is removed from the list of revisits.
void count_pod(TiersRecord& tiers, const PodRecord& record, const std::optional<PodRecord>& before);

/// Adds the container to the list of pending containers, or removes it if it is live.
void note_pending(TiersRecord& tiers, const PodRecord& record, const ContainerRecord& container);
/// Removes a container from that list.
void forget_pending(TiersRecord& tiers, std::string_view uid, const ContainerKey& container);

/// Notes a revisit of a pod, or changes its time.
void note_revisit(TiersRecord& tiers, Revisit revisit);
/// Removes the pod from the list of revisits.
void forget_revisit(TiersRecord& tiers, std::string_view uid);

}  // namespace podqos::core
