#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/pods/claim.h"
#include "common/core/pods/identity.h"
#include "common/core/pods/request.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// New resources of a running container, or of a running pod as a whole.
struct Resize {
  std::string container;  ///< name in the pod; "" for the pod as a whole
  EngineResources now;    ///< all resources after the update; -1: no limit any more
  /// Exact amounts, in place of what `now` stands for; those that are absent stay as they are.
  std::optional<Resources> exact = std::nullopt;
};

/// Replaces the pod's known resources by those of an in-place update. A value that the known one
/// converts to changes nothing, since the engine's units are coarser. Pod-level resources and the
/// engine's sums are raised to the sum of the containers; only an update of the pod lowers them.
/// Sums below that of the containers before the update are a kubelet's pod-level resources, and
/// stay, as do limits of a pod that its engine enforces. The class does not change: a container of
/// a kubelet's Guaranteed pod requests its new limits.
/// @note KEP-1287, in-place update of pod resources.
void apply_resize(PodRecord& record, const Resize& resize);

/// Gives a container that replaces a resized one the resources of its spec, which are the engine's
/// again. All containers of a CRI engine's pod have one spec, so that a record that differs in
/// nothing but resources tells of a resize.
/// @param identity  of the new container
/// @param claim  a whole spec
/// @return false if the record was not resized, but has another spec: it stays as it is
[[nodiscard]] bool undo_resize(PodRecord& record, const Identity& identity, const PodClaim& claim);

/// Raises the resources that `whole` has to at least the sum of the pod's containers.
void raise_to_containers(Resources& whole, const Pod& pod);

/// What a cgroup holds of the values that a container's runtime sets, or a kubelet for a pod.
/// Absent: not known.
struct HeldResources {
  /// CPU shares (cgroup v1), quota, period and memory limit; -1: no limit.
  EngineResources values = {};
  std::optional<CpuWeight> cpu_weight = std::nullopt;  ///< cgroup v2
  friend bool operator==(const HeldResources&, const HeldResources&) = default;
};

/// Both: that of the node may not be known yet.
inline constexpr std::array kWeightFormulas = {WeightFormula::kLinear, WeightFormula::kLog};

/// Whether the CPU share is that of a new cgroup, so that the runtime may have set none.
[[nodiscard]] bool has_new_share(const HeldResources& held);

/// Whether the shares or weight are what is set for a CPU request. A request may stand for shares
/// that are up to one less.
/// @param formula  of the weight; nullopt: any
[[nodiscard]] bool gives_share(MilliCpu request, const HeldResources& held,
                               std::optional<WeightFormula> formula = std::nullopt);

/// What is known of the node.
struct NodeRules {
  WeightFormula formula;  ///< of its runtimes
  NodeCapacity capacity;  ///< the kernel stores memory limits in whole pages
  const Settings& settings;
};

/// Whether the container's own cgroup has its runtime's values and lies in its pod's: not those of
/// sandboxes, of containers that have not started, or that lie elsewhere; nor that of a container
/// while the one that replaces it runs as well.
[[nodiscard]] bool tells_of_updates(const PodRecord& record, const ContainerRecord& container);

/// The values of a container that differ from what its runtime was given.
[[nodiscard]] EngineResources find_update(const PodRecord& record, const ContainerRecord& container,
                                          const HeldResources& held, const NodeRules& node);

/// Whether a container's resources are those of its engine, and not stated by annotations. The
/// class tells of them where a former release has written the record.
[[nodiscard]] bool has_inferred_resources(const PodRecord& record,
                                          const ContainerRecord& container);

/// Takes what runtimes have changed of running containers (`runc update`, `docker update`) as
/// updates of the engine, see apply_resize(): the values that differ from what podqos knows that
/// the runtime was given, lower ones as well. A pod whose annotations state its resources keeps
/// them, and limits that its engine has set for the pod itself stay. A container that has lost all
/// limits changes nothing: its cgroup may have been made anew. Nor do the CPU shares of a new
/// cgroup (1024, weight 100), which a container has for which its engine sets none.
/// Counts what the pod then requests.
/// @param held  in the order of the record's containers; empty for those to leave out
/// @return what the pod follows, one clause for each container
std::vector<std::string> follow_updates(PodRecord& record, std::span<const HeldResources> held,
                                        const NodeRules& node);

/// Says which limits of containers have no effect, since they are above their pod's, or do not
/// bound the pod, and the remedy.
/// @param held  as above
[[nodiscard]] std::vector<std::string> describe_unfollowed(const PodRecord& record,
                                                           std::span<const HeldResources> held,
                                                           const NodeRules& node);

}  // namespace podqos::core
