#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
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
  Bytes hugepages{0};     ///< of `memory`, what is preallocated as huge pages
  std::int64_t pids = 0;  ///< processes and threads; 0: not known
  Bytes page_size{4096};  ///< of the kernel
};

/// Determines what of a pod's requests counts: `capped_request`, the requests up to maxPodClaim of
/// the allocatable resources (capacity without reserves), and of that `counted_request`, what the
/// other pods leave; with qosReserved or memoryReservationPolicy, memory only as far as limits back
/// it. All requests of a kubelet's pod count, since its kubelet has admitted it, and none of a
/// BestEffort pod, as a kubelet does not count requests that only overhead can give it.
/// @param others  the sums of all other pods
void grant_requests(PodRecord& record, const TierSums& others, const Settings& settings,
                    const NodeCapacity& capacity);

/// CPU that is not for pods: systemReserved + kubeReserved.
[[nodiscard]] MilliCpu reserved_cpu(const Settings& settings);
/// CPU for pods: capacity - systemReserved - kubeReserved, at least 0.
[[nodiscard]] MilliCpu allocatable_cpu(const Settings& settings, const NodeCapacity& capacity);
/// Memory for pods: capacity - systemReserved - kubeReserved - huge pages, at least 0. Huge pages
/// are a resource of their own, of which no memory limit takes anything.
/// @note kubernetes pkg/kubelet/nodestatus/setters.go MachineInfo.
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

/// "cpu 1, memory 64Mi requested", and what of it counts if that is not all.
[[nodiscard]] std::string describe_requests(const PodRecord& record);

/// Warning for the node's operator that not all requests of a pod count, with cause and remedy.
/// nullopt if they all do, for a kubelet's, released and BestEffort pods, where the node has no
/// room for them but `admission` of the resource is "off", and where the limits of containers that
/// are still to come may back the rest.
[[nodiscard]] std::optional<std::string> describe_uncounted(const PodRecord& record,
                                                            const Settings& settings);

/// Warning that a pod whose containers became known one after another requests something, which
/// does not count: its first container requested nothing. nullopt if that is not so.
[[nodiscard]] std::optional<std::string> describe_late_requests(const PodRecord& record);

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
/// The same for all pods of podqos's own, which are in `tiers`. First all give back what they may
/// no longer claim, or what an ended container had backed, so that it is available to the others;
/// then those of TiersRecord::cut are granted theirs, then the rest.
void grant_all(PodRecords& records, TiersRecord& tiers, const Settings& settings,
               const NodeCapacity& capacity);

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
/// (capacity without reserves) and that no other pod requests, whatever of that is granted, and, as
/// pods request no processes, room for one more podPidsLimit below the kernel's pid_max. What a pod
/// has requested before always fits, so that its containers start again; so do CPU and memory of a
/// BestEffort pod. Not for a kubelet's pods, which it has admitted.
/// @return kRefused, with what is requested, allocatable and free, who has most of it, and what to
///         do
/// @note pkg/kubelet/lifecycle/predicate.go generalFilter, with plugin noderesources.Fits.
[[nodiscard]] Status check_node_fit(const NodeFit& fit, const Settings& settings);

/// As below, for the pod together with the others; nullopt for one that has been counted before.
[[nodiscard]] std::optional<std::string> describe_pids(const NodeFit& fit,
                                                       const Settings& settings);
/// Warning that the limits of processes of podqos's own pods (podPidsLimit) add up to more than the
/// kernel has. nullopt if they do not, if either is unknown, or if `admission.pids` is "off".
[[nodiscard]] std::optional<std::string> describe_pids(const TierSums& sums,
                                                       const Settings& settings,
                                                       const NodeCapacity& capacity);

}  // namespace podqos::core
