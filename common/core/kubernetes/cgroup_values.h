#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/kubernetes/eviction_order.h"
#include "common/core/kubernetes/pod_resources.h"

namespace podqos::core {

// Constants of pkg/kubelet/cm/helpers_linux.go.
constexpr CpuShares kMinShares{2};        ///< also means "no request"
constexpr CpuShares kMaxShares{262'144};  ///< 256 CPUs
constexpr std::int64_t kSharesPerCpu = 1024;
constexpr std::int64_t kMilliPerCpu = 1000;
constexpr Micros kDefaultPeriod{100'000};  ///< the kernel's and Kubernetes' default
constexpr Micros kMinQuota{1'000};         ///< the kernel's minimum

/// Formula that converts shares to a weight. One CPU (1024 shares) becomes 39 or 100.
enum class WeightFormula : std::uint8_t {
  kLinear,  ///< 39: the kubelet's own cgroups, runc < 1.3.2, crun < 1.23
  kLog,     ///< 100: runc ≥ 1.3.2, crun ≥ 1.23
};

/// Shares for a CPU request: floor(m * 1024 / 1000) within [2, 262144]; 0 and negative give 2.
/// @note pkg/kubelet/cm/helpers_linux.go MilliCPUToShares.
[[nodiscard]] CpuShares cpu_shares_for(MilliCpu request);
/// CPU request for shares: ceil(shares * 1000 / 1024); shares below 2 give 0.
[[nodiscard]] MilliCpu milli_cpu_for(CpuShares shares);
/// Quota for a CPU limit: floor(m * period / 1000), at least 1000 us; limits ≤ 0 give 0 ("none").
/// @note pkg/kubelet/cm/helpers_linux.go MilliCPUToQuota.
[[nodiscard]] Micros cpu_quota_for(MilliCpu limit, Micros period);
/// CPU limit for a quota: the least one whose quota is not below it, since the kernel refuses a
/// child's quota above its parent's; the inverse of cpu_quota_for(). nullopt for a quota or
/// period ≤ 0 (none).
[[nodiscard]] std::optional<MilliCpu> milli_cpu_for_quota(Micros quota, Micros period);

/// cpu.weight in [1, 10000] for shares, which are clamped to [2, 262144].
/// @note linear: pkg/kubelet/cm/cgroup_manager_linux.go getCPUWeight; log: opencontainers/cgroups
///       utils.go ConvertCPUSharesToCgroupV2Value. -ffast-math would move 1024 to 101.
[[nodiscard]] CpuWeight cpu_weight_for(CpuShares shares, WeightFormula formula);
/// The smallest shares that the formula converts to at least this weight.
[[nodiscard]] CpuShares shares_for_weight(CpuWeight weight, WeightFormula formula);
/// Shares for a weight of the linear formula: floor((w-1)*262142/9999)+2. Lossy: 1024 becomes 998.
/// @note pkg/kubelet/cm/cgroup_manager_linux.go.
[[nodiscard]] CpuShares shares_for_linear_weight(CpuWeight weight);

/// Limit by huge page size label as in cgroup file names ("2MB", "1GB").
using HugePageLimits = std::map<std::string, Bytes, std::less<>>;

/// Label of a page size: divided by 1024 while divisible, with the unit B, KB, MB, GB, TB or PB.
/// @note pkg/apis/core/v1/helper HugePageUnitSizeFromByteSize.
[[nodiscard]] std::string hugepage_label(Bytes page_size);

/// Limits per page size for a pod's summed *requests*. Two spellings of one size (2Mi, 2048Ki) are
/// added.
/// @return kInvalidArgument for a name like "hugepages-x" or "hugepages-0"
/// @note pkg/kubelet/cm/helpers_linux.go HugePageLimits, which skips such names.
[[nodiscard]] Result<HugePageLimits> hugepage_limits(const ResourceList& requests);

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
  /// How far one period may exceed the quota by what earlier ones have left of it.
  std::optional<Micros> cpu_burst = std::nullopt;
  /// cgroup v2: runs only where no sibling wants the CPU. Such values have 2 shares.
  std::optional<bool> cpu_idle = std::nullopt;
  /// 0: not written. -1: unlimited.
  std::optional<Bytes> memory_limit = std::nullopt;
  HugePageLimits hugepages = {};  ///< only the page sizes that the pod names
  std::optional<std::int64_t> pids_limit = std::nullopt;
  /// 1 to 10000, as io.weight of cgroup v2; among siblings, disks are shared in this proportion.
  std::optional<std::int64_t> io_weight = std::nullopt;
  /// Of a tier that systemd-oomd watches: at which pressure it kills there; {} takes that back.
  std::optional<MemoryPressure> oomd_pressure = std::nullopt;
  /// Whether systemd-oomd takes the cgroup last.
  std::optional<bool> oomd_avoid = std::nullopt;
  /// MemoryQoS of a pod or tier: memory.min, memory.low. Of a container:
  /// container_unified_values().
  UnifiedValues unified = {};
  friend bool operator==(const CgroupValues&, const CgroupValues&) = default;
};

/// Node settings for the values of pods and containers.
struct PodConfigParams {
  bool enforce_cpu_limits = true;      ///< cpuCFSQuota; false: a pod has -1 instead of a quota
  Micros cpu_period = kDefaultPeriod;  ///< cpuCFSQuotaPeriod
  /// Feature gate MemoryQoS with memoryReservationPolicy TieredReservation (KEP-2570): memory.min
  /// and memory.low protect memory requests.
  bool reserve_memory = false;
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

/// Values of a container's cgroup: shares from the CPU request (by default the limit), quota and
/// period from the CPU limit, memory limit and huge pages. A container without a limit gets the
/// pod-level one. Quota 0 and memory limit 0 mean "no limit", as in CRI's LinuxContainerResources.
/// @return kInvalidArgument for a huge page resource without a page size
/// @note pkg/kubelet/kuberuntime/kuberuntime_container_linux.go calculateLinuxResources.
[[nodiscard]] Result<CgroupValues> container_cgroup_values(const Pod& pod,
                                                           const Container& container,
                                                           const PodConfigParams& params);

/// Node settings for container_unified_values().
struct ContainerMemoryParams {
  bool limited_swap = false;               ///< swapBehavior LimitedSwap; otherwise NoSwap
  bool swap_controller_available = false;  ///< the kernel has memory.swap.max
  bool group_oom_kill = false;             ///< the opposite of singleProcessOOMKill
  bool memory_qos_available = false;       ///< the kernel has memory.min, memory.low, memory.high
  Bytes node_memory{0};                    ///< capacity of the machine
  Bytes swap_capacity{0};                  ///< swap to share between containers
};

/// memory.swap.max and memory.oom.group of one container (cgroup v2 "unified" values). With
/// LimitedSwap a container of a Burstable pod whose memory request and limit differ gets
/// trunc(request / node memory * swap); static and critical pods and all others get 0. The share is
/// computed in float64 as in the kubelet.
/// @note pkg/kubelet/kuberuntime/kuberuntime_container_linux.go
[[nodiscard]] UnifiedValues container_unified_values(const Pod& pod, QosClass qos_class,
                                                     const Container& container,
                                                     const ContainerMemoryParams& params);

/// The largest CPU quota with any period: 203 days.
/// @note kernel/sched/core.c max_cfs_runtime (MAX_BW), since Linux 5.8, on cgroup v1 and v2.
constexpr Micros kMaxQuota{(std::int64_t{1} << 44U) - 1};
/// The largest limit of memory or huge pages. The kernel takes larger values as "no limit".
/// @note include/linux/page_counter.h PAGE_COUNTER_MAX, on 64-bit machines with pages of 4 KiB.
constexpr Bytes kMaxMemoryLimit{kInt64Max / 4096 * 4096};
/// Amounts from here on are no limit. cgroup v1 shows "unlimited" as LONG_MAX rounded down to a
/// page, whatever the page size.
constexpr Bytes kUnlimitedBytes{std::int64_t{1} << 62U};
/// The largest number of processes and threads.
/// @note include/linux/threads.h PID_MAX_LIMIT on 64-bit machines; kernel/cgroup/pids.c.
constexpr std::int64_t kMaxPids = std::int64_t{1} << 22U;

/// Checks quota, memory limit and huge pages against the kernel's bounds. Shares and weights are in
/// range already (cpu_shares_for()), and so is podPidsLimit, which is checked with the
/// configuration.
/// @return kInvalidArgument with the value, the bound and the remedy
[[nodiscard]] Status check_kernel_bounds(const CgroupValues& values);

}  // namespace podqos::core
