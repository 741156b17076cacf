#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/core/kubernetes/tier.h"
#include "common/core/record.h"
#include "common/core/settings.h"

// Whether the node has room for what pods request: `admission`.
namespace podqos::core {

/// What a pod requests of the node.
struct PodShare {
  std::string name;  ///< in messages
  TierSum requested;
};

/// A pod that requests admission, and the node without it.
struct NodeFit {
  const PodRecord& pod;
  const std::optional<PodRecord>& before;  ///< its record so far; nullopt for a new pod
  const TierSums& others;                  ///< sums_beside() of `before`
  const NodeCapacity& capacity;
  /// The pods of the node, for messages; empty if there are too many to read.
  std::vector<PodShare> holders = {};
};

/// Checks that the node has room for what a pod requests of the resources whose `admission` is
/// "enforce", as a kubelet does before it admits a pod: CPU and memory that are allocatable
/// (capacity without reserves) and that no other pod requests, whatever of that counts, and, as
/// pods request no processes, room for one more podPidsLimit below the kernel's pid_max. What a pod
/// has requested before always fits, so that its containers start again; so do CPU and memory of a
/// BestEffort pod. Not for a kubelet's pods, which it has admitted.
/// @return kRefused, with what is requested, allocatable and free, who has most of it, and what to
///         do
/// @note pkg/kubelet/lifecycle/predicate.go generalFilter, with plugin noderesources.Fits.
[[nodiscard]] Status check_node_fit(const NodeFit& fit, const Settings& settings);

/// Warning that CPU or memory that a pod requests is not free, unless `admission` of the resource
/// is "off"; nullopt if it is.
/// @param is_enforced  check_node_fit() is asked, too: nothing is said of what it refuses
[[nodiscard]] std::optional<std::string> describe_overcommitment(const NodeFit& fit,
                                                                 const Settings& settings,
                                                                 bool is_enforced);
/// Warning that the pods of the node request more CPU or memory together than is allocatable,
/// unless `admission` of the resource is "off". nullopt if they do not.
[[nodiscard]] std::optional<std::string> describe_overcommitment(const TierSums& sums,
                                                                 const Settings& settings,
                                                                 const NodeCapacity& capacity);

/// As below, for the pod together with the others; nullopt for one that has been counted before.
[[nodiscard]] std::optional<std::string> describe_pids(const NodeFit& fit,
                                                       const Settings& settings);
/// Warning that the limits of processes of podqos's own pods (podPidsLimit) add up to more than the
/// kernel has. nullopt if they do not, if either is unknown, or if `admission.pids` is "off".
[[nodiscard]] std::optional<std::string> describe_pids(const TierSums& sums,
                                                       const Settings& settings,
                                                       const NodeCapacity& capacity);

}  // namespace podqos::core
