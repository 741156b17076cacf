#pragma once

#include <cstdint>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/pod_config.h"

namespace podqos::core {

/// The longest CPU quota, whatever its period: 203 days.
/// @note kernel/sched/core.c max_cfs_runtime (MAX_BW), since Linux 5.8, on cgroup v1 and v2.
constexpr Micros kMaxQuota{(std::int64_t{1} << 44U) - 1};
/// The largest limit of memory or huge pages: more means "no limit" to the kernel.
/// @note include/linux/page_counter.h PAGE_COUNTER_MAX, on 64-bit machines with pages of 4 KiB.
constexpr Bytes kMaxMemoryLimit{kInt64Max / 4096 * 4096};
/// The most processes and threads.
/// @note include/linux/threads.h PID_MAX_LIMIT on 64-bit machines; kernel/cgroup/pids.c.
constexpr std::int64_t kMaxPids = std::int64_t{1} << 22U;

/// Are these values that a kernel takes? Shares and weights always are (cpu.h holds them in range),
/// and so is podPidsLimit (the configuration is checked).
/// @return kInvalidArgument with the value, the bound and the remedy.
[[nodiscard]] Status check_kernel_bounds(const CgroupValues& values);

}  // namespace podqos::core
