#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/core/container_facts.h"
#include "common/core/identity.h"
#include "common/core/pod_claim.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// Capacity of the node, pinned by the configuration or measured.
struct NodeCapacity {
  Bytes memory;
  MilliCpu cpu;
  Bytes swap{0};  ///< of the machine; 0 where no setting asks for it
};

/// The record of a pod after a container has come to it, and what a person should know about it.
struct MergedPod {
  PodRecord record;
  std::vector<std::string> warnings;
};

/// Decides class and resources of the pod that a container joins.
///
/// The class is fixed when the pod is known: by the engine's cgroup, by a complete claim, else by
/// the first application container (then never Guaranteed unless podqos.io/qos-class says so). A
/// later claim that contradicts it is warned of.
/// @param existing  the pod's record, if there is one; containers that are dead already taken out.
/// @return kConflict when the pod is another's (ownership.h), kTooLarge when the record would
/// outgrow its bounds (record_size.h).
[[nodiscard]] Result<MergedPod> merge_claim(const std::optional<PodRecord>& existing,
                                            const Identity& identity, const PodClaim& claim,
                                            const Settings& settings);

/// Would merge_claim() return the record of a whole pod, in which there is room for one more
/// container (record_size.h), as it is and without a warning? Said without a copy of it. false:
/// only merge_claim() can tell.
[[nodiscard]] bool adds_nothing(const PodRecord& record, const Identity& identity,
                                const PodClaim& claim, const Settings& settings);

/// What of a pod's requests counts.
struct Grants {
  /// Up to maxPodClaim of what the node has for pods (capacity without reserves).
  TierSum claimed;
  /// Up to what the node can still give beside others; with a reservation, of memory up to what
  /// backs the claim (reservation.h).
  TierSum granted;
  friend bool operator==(const Grants&, const Grants&) = default;
};
/// Of an adopted pod all that it claims counts: its kubelet has admitted it.
/// @param others  the sums without this pod
/// @param arriving  backed_memory of a container that is yet to be recorded
[[nodiscard]] Grants grants_for(const PodRecord& record, const TierSums& others,
                                const Settings& settings, const NodeCapacity& capacity,
                                const std::optional<Bytes>& arriving = std::nullopt);
/// Sets `claimed` and `granted` of a record to them.
void grant_requests(PodRecord& record, const TierSums& others, const Settings& settings,
                    const NodeCapacity& capacity);

/// allocatable memory: capacity - system - kube.
[[nodiscard]] Bytes allocatable_memory(const Settings& settings, const NodeCapacity& capacity);

/// sums + record.granted, and the way back. Adopted pods have a sum of their own.
void add_pod(TiersRecord& tiers, const PodRecord& record);
void remove_pod(TiersRecord& tiers, const PodRecord& record);

/// Values of the pod's cgroup. A partial pod's limits only grow (kept in the record), and are
/// explicitly unlimited as soon as one container has none. The shares are Kubernetes', but not more
/// than those of the whole node (node_bound.h).
[[nodiscard]] Result<CgroupValues> pod_values(PodRecord& record, const Settings& settings);

/// Kubernetes' score; of a pod that exceeds the node (node_bound.h) that of a Burstable pod without
/// priority, whichever its class: who claims what no node like this can give is not protected.
[[nodiscard]] int container_oom_score_adj(const PodRecord& record, const ContainerRecord& container,
                                          Bytes node_memory);

/// Directory name of the container in `pod_cgroup`: the engine's own leaf where that holds the id,
/// else the id; in a slice the engine's own scope "prefix-name.scope", else "podqos-ID-HASH.scope".
/// Made unique among the pod's containers `known`. Those must hold the dead ones, too: their
/// runtimes have not deleted them yet, and would delete whoever has their cgroup.
/// @return kInvalidArgument for an id that cannot name a directory, kConflict if another container
/// has the unique name already.
[[nodiscard]] Result<std::string> container_leaf(const ContainerFacts& facts,
                                                 const std::string& pod_cgroup,
                                                 std::span<const ContainerRecord> known);

/// Does the engine's oomScoreAdj count? Absent and 0 do not (Docker always writes 0).
[[nodiscard]] bool engine_sets_oom(const ContainerFacts& facts);

[[nodiscard]] WeightFormula weight_formula(const Settings& settings,
                                           std::optional<WeightFormula> observed);

}  // namespace podqos::core
