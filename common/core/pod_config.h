#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/cpu.h"
#include "common/core/hugepages.h"
#include "common/core/pod.h"

namespace podqos::core {

/// Files of cgroup v2 and what stands in them: OCI's linux.resources.unified.
using UnifiedValues = std::map<std::string, std::string, std::less<>>;

/// What a cgroup that bounds a pod (or a tier) should hold. Absent means "podqos does not set it".
struct CgroupValues {
  std::optional<CpuShares> cpu_shares = std::nullopt;
  /// -1: explicitly unlimited; 0: Kubernetes' "no quota" of a pod that its status makes Guaranteed.
  std::optional<Micros> cpu_quota = std::nullopt;
  std::optional<Micros> cpu_period = std::nullopt;
  /// 0: not written; -1: explicitly unlimited.
  std::optional<Bytes> memory_limit = std::nullopt;
  HugePageLimits hugepages = {};  ///< only the sizes the pod names
  std::optional<std::int64_t> pids_limit = std::nullopt;
  /// Of a pod or tier MemoryQoS: memory.min, memory.low. Of a container see container_memory.h.
  UnifiedValues unified = {};
  friend bool operator==(const CgroupValues&, const CgroupValues&) = default;
};

enum class MemoryReservationPolicy : std::uint8_t { kNone, kTieredReservation };

struct PodConfigParams {
  bool enforce_cpu_limits = true;  ///< false: quota becomes -1 where it would have been set
  Micros cpu_period = kDefaultPeriod;
  bool enforce_memory_qos = false;
  MemoryReservationPolicy reservation_policy = MemoryReservationPolicy::kNone;
  /// Absent or negative: not set; 0 is lowered to 1.
  std::optional<std::int64_t> pod_pids_limit = std::nullopt;
};

/// Pod-level cgroup values of a defaulted pod of the given class.
/// @note pkg/kubelet/cm/helpers_linux.go ResourceConfigForPod; pids:
/// pod_container_manager_linux.go.
[[nodiscard]] Result<CgroupValues> pod_cgroup_values(const Pod& pod, QosClass qos_class,
                                                     const PodConfigParams& params);

}  // namespace podqos::core
