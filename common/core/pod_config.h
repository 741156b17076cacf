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

/// Contents of cgroup v2 files by file name: OCI's linux.resources.unified.
using UnifiedValues = std::map<std::string, std::string, std::less<>>;

/// Range of I/O weights, and that of a new cgroup.
/// @note Documentation/admin-guide/cgroup-v2.rst, io.weight
constexpr std::int64_t kMinIoWeight = 1;
constexpr std::int64_t kMaxIoWeight = 10'000;
constexpr std::int64_t kDefaultIoWeight = 100;

/// Values of the cgroup of a container, pod or tier, independent of the cgroup version. podqos does
/// not set absent ones.
struct CgroupValues {
  std::optional<CpuShares> cpu_shares = std::nullopt;
  /// -1: unlimited. 0: "no quota", which Kubernetes sets for a pod without limits whose status says
  /// that it is Guaranteed.
  std::optional<Micros> cpu_quota = std::nullopt;
  std::optional<Micros> cpu_period = std::nullopt;
  /// 0: not written. -1: unlimited.
  std::optional<Bytes> memory_limit = std::nullopt;
  HugePageLimits hugepages = {};  ///< only the page sizes that the pod names
  std::optional<std::int64_t> pids_limit = std::nullopt;
  /// 1 to 10000, as io.weight of cgroup v2; among siblings, disks are shared in this proportion.
  std::optional<std::int64_t> io_weight = std::nullopt;
  /// MemoryQoS of a pod or tier: memory.min, memory.low. Of a container: container_memory.h.
  UnifiedValues unified = {};
  friend bool operator==(const CgroupValues&, const CgroupValues&) = default;
};

/// Kubelet setting memoryReservationPolicy: whether memory requests are protected by memory.min and
/// memory.low (KEP-2570).
enum class MemoryReservationPolicy : std::uint8_t { kNone, kTieredReservation };

/// Node settings for pod_cgroup_values().
struct PodConfigParams {
  bool enforce_cpu_limits = true;      ///< cpuCFSQuota; false: -1 instead of a quota
  Micros cpu_period = kDefaultPeriod;  ///< cpuCFSQuotaPeriod
  bool enforce_memory_qos = false;     ///< feature gate MemoryQoS
  MemoryReservationPolicy reservation_policy = MemoryReservationPolicy::kNone;
  /// podPidsLimit; absent or negative: not set. 0 is lowered to 1.
  std::optional<std::int64_t> pod_pids_limit = std::nullopt;
  /// ioWeight.guaranteed: of each Guaranteed pod. Others share the weight of their tier.
  std::optional<std::int64_t> guaranteed_io_weight = std::nullopt;
};

/// Values of the cgroup of a pod with API defaults. A Guaranteed pod gets shares, quota and memory
/// limit, a Burstable one those of them that the pod as a whole has (limit_declared()), and a
/// BestEffort one 2 shares; each gets its huge pages.
/// @return kInvalidArgument for a huge page resource without a page size
/// @note pkg/kubelet/cm/helpers_linux.go ResourceConfigForPod; pids:
///       pod_container_manager_linux.go.
[[nodiscard]] Result<CgroupValues> pod_cgroup_values(const Pod& pod, QosClass qos_class,
                                                     const PodConfigParams& params);

}  // namespace podqos::core
