#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/container_facts.h"
#include "common/core/layout.h"
#include "common/core/pod_config.h"

namespace podqos::core {

/// The largest CPU quota with any period: 203 days.
/// @note kernel/sched/core.c max_cfs_runtime (MAX_BW), since Linux 5.8, on cgroup v1 and v2.
constexpr Micros kMaxQuota{(std::int64_t{1} << 44U) - 1};
/// The largest limit of memory or huge pages. The kernel takes larger values as "no limit".
/// @note include/linux/page_counter.h PAGE_COUNTER_MAX, on 64-bit machines with pages of 4 KiB.
constexpr Bytes kMaxMemoryLimit{kInt64Max / 4096 * 4096};
/// The largest number of processes and threads.
/// @note include/linux/threads.h PID_MAX_LIMIT on 64-bit machines; kernel/cgroup/pids.c.
constexpr std::int64_t kMaxPids = std::int64_t{1} << 22U;

/// Checks quota, memory limit and huge pages against the kernel's bounds. Shares and weights are in
/// range already (cpu.h), and so is podPidsLimit, which is checked with the configuration.
/// @return kInvalidArgument with the value, the bound and the remedy
[[nodiscard]] Status check_kernel_bounds(const CgroupValues& values);

/// Checks that a container in the pod's cgroup can have its realtimeRuntime. Runtimes write it on
/// cgroup v1 only, where a cgroup has at most what its parent has, and the cgroups of pods have
/// none. Without CONFIG_RT_GROUP_SCHED the runtime cannot write it in any cgroup.
/// @note kernel/sched/rt.c tg_rt_schedulable(); opencontainers/cgroups fs/cpu.go SetRtSched().
/// @param cpu  version of the hierarchy of the cpu controller
/// @return kInvalidArgument with the value, the cause and the remedy
[[nodiscard]] Status check_realtime(const EngineResources& resources,
                                    std::optional<CgroupVersion> cpu, std::string_view pod_cgroup);

}  // namespace podqos::core
