#pragma once

#include <optional>

#include "common/base/units.h"
#include "common/core/pod_config.h"

namespace podqos::core {

/// Sum over the pods of one class. cpu in milli (each pod rounded up first), memory in bytes.
struct TierSum {
  std::int64_t pods = 0;
  MilliCpu cpu;
  Bytes memory;
  friend bool operator==(const TierSum&, const TierSum&) = default;
};

struct TierSums {
  TierSum guaranteed;
  TierSum burstable;
  TierSum besteffort;
  TierSum adopted = {};  ///< pods of a kubelet, of all classes: what they request is not free

  [[nodiscard]] TierSum& of(QosClass qos_class);
  [[nodiscard]] const TierSum& of(QosClass qos_class) const;
  friend bool operator==(const TierSums&, const TierSums&) = default;
};

struct TierParams {
  std::optional<std::int64_t> reserve_percent =
      std::nullopt;          ///< qosReserved memory, 0..100; nullopt: no tier memory limits
  Bytes allocatable_memory;  ///< capacity - system - kube; ≤ 0: no tier memory limits
};

/// Values of the tiers by the rule: burstable shares from the sum of requests (no pods → 2),
/// besteffort 2; memory: burstable = A - trunc(G*N/100), besteffort = burstable - trunc(B*N/100),
/// never below 0. A is what adopted pods leave of `allocatable_memory`.
/// @note pkg/kubelet/cm/qos_container_manager_linux.go setCPUCgroupConfig, setMemoryReserve.
struct TierValues {
  CgroupValues burstable;
  CgroupValues besteffort;
  friend bool operator==(const TierValues&, const TierValues&) = default;
};
[[nodiscard]] TierValues tier_values(const TierSums& sums, const TierParams& params);

/// Of all pods of podqos's own. The shares for this CPU, at least 2, are those of a directory that
/// holds nothing else, beside a kubelet's kubepods: so its BestEffort pods cannot claim more than
/// the node's other pods.
[[nodiscard]] TierSum sum_of_own(const TierSums& sums);

/// MemoryQoS values of the root and the burstable tier.
struct TierMemoryQos {
  Bytes root_memory_min;       ///< kubepods memory.min
  Bytes burstable_memory_low;  ///< burstable memory.low
};
/// @note qos_container_manager_linux.go setMemoryQoS (1.36); zero where the policy is None.
[[nodiscard]] TierMemoryQos tier_memory_qos(const TierSums& sums, MemoryReservationPolicy policy);

/// What may be written now for a memory limit that the rule wants: never below usage + margin, nor
/// below `floor`.
/// @param usage  current usage of that tier; nullopt when it could not be read: then the previous
/// rule alone holds.
[[nodiscard]] Bytes bounded_tier_limit(Bytes wanted, std::optional<Bytes> usage, Bytes floor);
constexpr Bytes kTierMemoryMargin{16LL << 20U};

/// allocatable = capacity - system - kube, at least 0.
[[nodiscard]] Bytes allocatable(Bytes capacity, Bytes system_reserved, Bytes kube_reserved);

/// How much of a claimed request may count: not more than what `capacity` leaves beside
/// `already_granted`, and not below 0.
[[nodiscard]] std::int64_t grant(std::int64_t claimed, std::int64_t capacity,
                                 std::int64_t already_granted);

}  // namespace podqos::core
