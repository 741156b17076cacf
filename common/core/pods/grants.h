#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/units.h"
#include "common/core/kubernetes/tier.h"
#include "common/core/pods/request.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// Capacity of the node, from the configuration or measured.
struct NodeCapacity {
  Bytes memory;
  MilliCpu cpu;
  Bytes swap{0};          ///< of the machine; 0 if no setting needs it
  std::int64_t pids = 0;  ///< processes and threads; 0: not known
};

/// The part of a pod's requests that counts.
struct Grants {
  /// Requests up to maxPodClaim of the allocatable resources (capacity without reserves).
  TierSum claimed;
  /// Claimed requests up to what the other pods leave. With qosReserved, memory also counts only as
  /// far as it is backed by limits (countable()).
  TierSum granted;
  friend bool operator==(const Grants&, const Grants&) = default;
};
/// Computes the grants of a pod. All requests of an adopted pod count, since its kubelet has
/// admitted it. No requests of a BestEffort pod are granted.
/// @param others  the sums of all other pods
[[nodiscard]] Grants grants_for(const PodRecord& record, const TierSums& others,
                                const Settings& settings, const NodeCapacity& capacity);
/// Sets `claimed` and `granted` of a record to its grants.
void grant_requests(PodRecord& record, const TierSums& others, const Settings& settings,
                    const NodeCapacity& capacity);

/// What is allocatable and neither granted to pods of podqos's own nor requested by adopted ones,
/// at least 0; `pods` is 0.
[[nodiscard]] TierSum free_resources(const TierSums& sums, const Settings& settings,
                                     const NodeCapacity& capacity);

/// CPU that is not for pods: systemReserved + kubeReserved.
[[nodiscard]] MilliCpu reserved_cpu(const Settings& settings);
/// CPU for pods: capacity - systemReserved - kubeReserved, at least 0.
[[nodiscard]] MilliCpu allocatable_cpu(const Settings& settings, const NodeCapacity& capacity);
/// Memory for pods: capacity - systemReserved - kubeReserved, at least 0.
[[nodiscard]] Bytes allocatable_memory(const Settings& settings, const NodeCapacity& capacity);

/// Sum of the memory limits that a CRI engine enforces on the pod's containers. Only this much of
/// the pod's memory request is reserved, since under such an engine the pod's author writes the
/// annotations that claim it.
/// @return nullopt if the whole request counts: a container was made by the node's operator
///         (Podman, Docker, a plain runtime), or a kubelet has placed the pod
[[nodiscard]] std::optional<Bytes> backed_memory(const PodRecord& record);

/// ContainerRecord::backed_memory of a new container. The sandbox also backs the pod's overhead,
/// which the node's operator sets (RuntimeClass) and no container's limit covers.
[[nodiscard]] std::optional<Bytes> backing_of(const ContainerFacts& facts,
                                              const EngineAnnotations& engine);

/// What of a pod's claim is granted if the node has room: nothing to a BestEffort pod, as a kubelet
/// does not count requests that only overhead can give it; with qosReserved, memory only as far as
/// limits back it.
[[nodiscard]] TierSum countable(const PodRecord& record, TierSum claimed, const Settings& settings);

/// Warning for the node's operator that not all requests of a pod count, with cause and remedy.
/// nullopt if they all do, for adopted, released and BestEffort pods, where the node has no room
/// for them but `admission` of the resource is "off", and where the limits of containers that are
/// still to come may back the rest.
[[nodiscard]] std::optional<std::string> describe_uncounted(const PodRecord& record,
                                                            const Settings& settings);

/// Whether the pod requests more CPU than one pod may claim of the node (`claimed`, see
/// grant_requests). Kubernetes has no values for such a pod, since its kubelet would not admit it.
/// False for BestEffort pods, whose requests do not count, and for adopted pods.
[[nodiscard]] bool exceeds_node_cpu(const PodRecord& record);
/// The same for CPU or memory.
[[nodiscard]] bool exceeds_node(const PodRecord& record);

/// Enters a pod into the list of those whose requests have been cut, changes its entry, or removes
/// it. A pod beyond the first 64 is not entered.
void note_cut(TiersRecord& tiers, const PodRecord& record, const Settings& settings);
/// Removes a pod from that list.
void forget_cut(TiersRecord& tiers, std::string_view uid);

/// The uids of the pods in the list to which something can be granted now, in their order; at most
/// four, to bound the time under the lock.
[[nodiscard]] std::vector<std::string> grantable(const TiersRecord& tiers, const Settings& settings,
                                                 const NodeCapacity& capacity);

/// Grants a pod its requests anew, and counts it with them.
void grant_again(PodRecord& record, TiersRecord& tiers, const Settings& settings,
                 const NodeCapacity& capacity);

}  // namespace podqos::core
