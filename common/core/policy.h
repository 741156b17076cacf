#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/core/container_facts.h"
#include "common/core/identity.h"
#include "common/core/pod_claim.h"
#include "common/core/pod_config.h"
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

/// The record of a pod with a new container's claim, and warnings about the claim.
struct MergedPod {
  PodRecord record;
  /// The container's name in the record. In an incomplete pod no other container has it, since each
  /// counts for itself: the second "web" is "web-2".
  std::string container;
  std::vector<std::string> warnings;  ///< one sentence each, for the log
};

/// Determines class and resources of a pod to which a container is admitted.
///
/// The class is fixed by the first claim: by the engine's cgroup, by a complete spec, or by the
/// first application container, then Guaranteed only if podqos.io/qos-class says so. Later claims
/// that contradict it give a warning.
/// @param existing  the pod's record without containers that have ended; nullopt for a new pod
/// @return kConflict if the pod belongs to other containers (ownership.h), kTooLarge if the record
///         would exceed its bounds (record_size.h)
[[nodiscard]] Result<MergedPod> merge_claim(const std::optional<PodRecord>& existing,
                                            const Identity& identity, const PodClaim& claim,
                                            const Settings& settings);

/// The part of a pod's requests that counts.
struct Grants {
  /// Requests up to maxPodClaim of the allocatable resources (capacity without reserves).
  TierSum claimed;
  /// Claimed requests up to what the other pods leave. With qosReserved, memory also counts only as
  /// far as it is backed by limits (reservation.h).
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

/// The parameters of pods' values that these settings mean.
[[nodiscard]] PodConfigParams pod_config_params(const Settings& settings);

/// Values of the pod's cgroup, as Kubernetes computes them. Two cases differ: an incomplete pod has
/// the limits of its containers whatever its class is, and is unlimited as soon as one has none;
/// the shares of a pod that exceeds the node are those of its claimed CPU (node_bound.h).
/// @return the errors of pod_cgroup_values() and, unless the pod is adopted, check_kernel_bounds()
[[nodiscard]] Result<CgroupValues> pod_values(const PodRecord& record, const Settings& settings);

/// oom_score_adj of a container, as Kubernetes computes it (oom.h). A container of a pod that
/// exceeds the node (node_bound.h) is scored as Burstable without priority, whatever its class, so
/// that excessive claims give no protection.
[[nodiscard]] int container_oom_score_adj(const PodRecord& record, const ContainerRecord& container,
                                          Bytes node_memory);

/// Name of the container's cgroup in `pod_cgroup`: the engine's own name if it contains the id,
/// else the id; with systemd the engine's own scope "prefix-name.scope", else
/// "podqos-ID-HASH.scope".
/// @param known  containers of the pod, which must have other names. Must include those that have
///               ended: their runtimes delete their cgroups later.
/// @return kInvalidArgument for an id that cannot be part of a name, kConflict if another container
///         has the name already
[[nodiscard]] Result<std::string> container_leaf(const ContainerFacts& facts,
                                                 const std::string& pod_cgroup,
                                                 std::span<const ContainerRecord> known);

/// Whether the engine has set oomScoreAdj. False for 0, which Docker always writes.
[[nodiscard]] bool engine_sets_oom(const ContainerFacts& facts);

/// The shares→weight formula to use: the configured one, else the one observed in a container, else
/// kLog.
[[nodiscard]] WeightFormula weight_formula(const Settings& settings,
                                           std::optional<WeightFormula> observed);

}  // namespace podqos::core
