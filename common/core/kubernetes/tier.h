#pragma once

#include <optional>

#include "common/base/units.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/pod_resources.h"

namespace podqos::core {

/// Number of pods and sum of their requests.
struct TierSum {
  std::int64_t pods = 0;
  MilliCpu cpu;  ///< each pod's request is rounded up before it is added
  Bytes memory;
  /// Saturates.
  TierSum& operator+=(const TierSum& more);
  /// CPU and memory, each at most that of `most` and at least 0.
  [[nodiscard]] TierSum capped(const TierSum& most) const;
  friend bool operator==(const TierSum&, const TierSum&) = default;
};

/// Sums of the node's pods: of what counts of podqos's own by class, and of what is requested.
struct TierSums : ByClass<TierSum> {
  TierSum kubelets = {};   ///< a kubelet's pods of all classes; not available to podqos's own
  TierSum requested = {};  ///< podqos's own pods of all classes, see requested_by()
  friend bool operator==(const TierSums&, const TierSums&) = default;
};

/// Values of the two tiers, and limits of the root that they lie in.
struct TierValues {
  CgroupValues burstable;
  CgroupValues besteffort;
  CgroupValues root = {};  ///< root_limits()
  friend bool operator==(const TierValues&, const TierValues&) = default;
};
/// Computes the tiers' values. Shares: burstable by the sum of its CPU requests (2 without pods),
/// besteffort 2. Memory limits, with A = allocatable memory - memory of a kubelet's pods, G and B =
/// memory of Guaranteed and Burstable pods and N = reserve_percent: burstable = A - trunc(G*N/100),
/// besteffort = burstable - trunc(B*N/100), both at least 0.
/// @param reserve_percent  qosReserved memory, 0 to 100; nullopt: no memory limits
/// @param allocatable_memory  capacity - system - kube; ≤ 0: no memory limits
/// @note pkg/kubelet/cm/qos_container_manager_linux.go setCPUCgroupConfig, setMemoryReserve.
[[nodiscard]] TierValues tier_values(const TierSums& sums,
                                     std::optional<std::int64_t> reserve_percent = std::nullopt,
                                     Bytes allocatable_memory = {});

/// Sum of all of podqos's own pods. Its CPU gives the shares, at least 2, of the cgroup that
/// contains them beside a kubelet's kubepods, so that podqos's BestEffort pods get no more CPU than
/// the node's other pods.
[[nodiscard]] TierSum sum_of_own(const TierSums& sums);

/// What the root reserves with memoryReservationPolicy TieredReservation: as the kubelet's,
/// memory.min, and the burstable tier's memory.low, since the kernel protects a cgroup by at most
/// what protects its parent.
/// @note pkg/kubelet/cm/qos_container_manager_linux.go setMemoryQoS (1.36); mm/page_counter.c
///       effective_protection
[[nodiscard]] UnifiedValues root_reservation(const TierSums& sums);

/// The memory limit to write for a tier: `wanted`, but at least `floor` and at least usage +
/// kTierMemoryMargin, since cgroup v2 reclaims memory or kills processes to enforce a lower limit.
/// @param usage  current memory usage of the tier; nullopt if unknown, then only `floor` counts
[[nodiscard]] Bytes bounded_tier_limit(Bytes wanted, std::optional<Bytes> usage, Bytes floor);
constexpr Bytes kTierMemoryMargin{16LL << 20U};  ///< 16 MiB

}  // namespace podqos::core
