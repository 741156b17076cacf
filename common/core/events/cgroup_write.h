#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/cgroups/layout.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/tier.h"
#include "common/core/record.h"
#include "common/core/settings.h"

// Which values are written to the cgroups of pods, and to those above them: the root of a tree,
// what podqos has made above that, and tiers.
namespace podqos::core {

/// What is observed of the cgroup of one of podqos's own pods before its values are written.
struct PodWriteSnapshot {
  /// The pod's record before this event, whose values the cgroup holds; nullopt if it is not known
  /// which values it holds, or if it does not exist.
  std::optional<PodRecord> written = std::nullopt;
  /// The cgroup exists, and any value may have been changed, also those that no rule asks for.
  bool may_differ = false;
  /// podqos has set the cgroup's I/O weight, and may no longer want one.
  bool has_io_weight = false;
  bool has_eviction = false;  ///< the same of what systemd-oomd goes by
  /// podqos may have reserved memory for pods of the tree, and may no longer want to.
  bool has_reservation = false;
};

/// What is written of a pod's values.
struct PodWrite {
  Cgroup make = Cgroup::kExists;  ///< kCreate: make the cgroup and write all values
  CgroupValues values;
  bool hugepages = false;  ///< huge page limits too: two files for each page size of the host
  bool may_cut = false;    ///< the memory limit may be below the usage: see hold_above_usage()
};

/// Decides what is written of the pod's values: all of them, with limits that other programs have
/// set removed, or what may differ from `written`.
/// @return the errors of pod_values()
[[nodiscard]] Result<PodWrite> decide_pod_write(const PodRecord& record,
                                                const PodWriteSnapshot& snapshot,
                                                const Settings& settings);

/// Keeps a memory limit above the usage: below it the kernel would invoke the OOM killer
/// (Documentation/admin-guide/cgroup-v2.rst, memory.max). A reconciliation lowers one that stays
/// above the rule for this.
/// @param usage  the memory in use that the limit would cut off; nullopt if it cuts off none
/// @return a notice for the log; nullopt if the limit is the rule's
[[nodiscard]] std::optional<std::string> hold_above_usage(PodWrite& write,
                                                          const std::string& cgroup,
                                                          std::optional<Bytes> usage);

/// The node's CPU, as far as the share of podqos's pods follows from it.
struct NodeCpu {
  MilliCpu allocatable;  ///< capacity - system - kube
  MilliCpu requested;    ///< by podqos's own pods
  MilliCpu kubelets;     ///< requested by the pods of a kubelet
  /// cpu.weight (v2) or cpu.shares (v1) of the kubelet's root; nullopt without a kubelet's pods.
  std::optional<std::int64_t> kubelets_root = std::nullopt;
  RootCpuWeight rule = {};  ///< rootCpuWeight
  MilliCpu reserved = {};   ///< system + kube
  /// As `kubelets_root`, of system.slice; only used with the rule "proportional".
  std::optional<std::int64_t> system = std::nullopt;
};

/// The cgroups that have the shares of all pods of a tree: those that podqos has made above the
/// tree's root or, with cgroupRoot "/", that root itself; none below a cgroup that others have
/// made.
[[nodiscard]] std::vector<std::string> cgroups_with_share(const TreeRecord& tree);

/// Their CPU shares, beside the system's.
/// Without a kubelet's pods they are those of what is allocatable, C, as a kubelet's own root has.
/// Beside them, with K requested there, R by podqos's pods, and weight or shares W of the kubelet's
/// root, each side keeps what it requests, the kubelet first, and half of what is free:
/// R' = min(R, C - K), F = C - K - R', W * (R' + F/2) / max(K + F/2, C/4). At most 4 W, so that the
/// system and the kubelet itself keep their part where the kubelet's pods request next to nothing.
/// rootCpuWeight replaces the shares of C: by system.slice's, times C, divided by what is reserved
/// (if anything is), or by a weight, which also counts beside a kubelet's pods.
/// Where each driver has a tree they are divided by what the trees' pods request, each at least
/// C/100, so equally if nothing is requested. A tree without pods gets none.
/// @param version  of the cpu controller: on v2 the proportion holds between weights
/// @note pkg/kubelet/cm/node_container_manager_linux.go getCgroupConfig.
[[nodiscard]] CpuShares tree_shares(const NodeCpu& node, const NodeState& state,
                                    const TreeRecord& tree, CgroupVersion version,
                                    WeightFormula formula);

/// Limits and reservation of a tree's root. Limits, by enforceNodeAllocatable: memory that is
/// allocatable less what pods outside the tree request, at least 0, without regard to usage; and
/// the machine's capacity of processes. Both are absent where the setting is off, and each where
/// its capacity is not known. The reservation, by memoryReservationPolicy: root_reservation() of
/// the tree's own pods.
/// @note pkg/kubelet/cm/node_container_manager_linux.go enforceNodeAllocatableCgroups,
///       getNodeAllocatableInternalAbsolute; the kubelet does not know of pods outside its tree.
[[nodiscard]] CgroupValues root_limits(const NodeState& state, const TreeRecord& tree,
                                       const Settings& settings, const NodeCapacity& capacity);

/// What a transaction knows of root and tiers of a tree.
enum class TreeState : std::uint8_t {
  kUnchanged,  ///< they exist, and hold the values of the last transaction
  kMissing,    ///< they may be missing, and any value may have been changed
  kFresh,      ///< made by this transaction, without values
};

/// What is observed of a tier before its values are written.
struct TierSnapshot {
  std::optional<Bytes> usage = std::nullopt;  ///< of memory; nullopt also if it has no limit
  /// The memory limit as the kernel has it; nullopt: none, or not needed, since usage and margin
  /// are below the rule.
  std::optional<Bytes> limit = std::nullopt;
  bool has_io_weight = false;  ///< podqos has set its I/O weight; observed only with kMissing
  bool has_eviction = false;   ///< the same of the threshold that systemd-oomd goes by
};

/// What is observed of a tree's tiers.
struct TierSnapshots {
  /// podqos may have reserved memory (memory.min, memory.low); only with kMissing.
  bool has_reservation = false;
  TierSnapshot root;
  TierSnapshot burstable;
  TierSnapshot besteffort;
  bool watched_by_oomd = false;  ///< is_watched_by_oomd()
};

/// The values of a tree's tiers that follow from the sums, without regard to usage: CPU shares from
/// those of its own pods, beside which alone they count, and so memory.low; memory limits from
/// those of the node.
[[nodiscard]] TierValues wanted_tiers(const TierSums& tree, const TierSums& node,
                                      const Settings& settings, const NodeCapacity& capacity);

/// What is written of the tiers' values: a memory limit is not lowered below usage and margin
/// (bounded_tier_limit()), nor raised above the rule for them, by which a tier that fills whatever
/// limit it has would gain a margin with each event; and what does not change later is written only
/// if the tree is not as it was.
[[nodiscard]] TierValues decide_tier_write(TierValues wanted, TreeState tree,
                                           const TierSnapshots& snapshots,
                                           const Settings& settings);

}  // namespace podqos::core
