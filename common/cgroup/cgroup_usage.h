#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "common/base/units.h"
#include "common/cgroup/cgroup_view.h"

namespace podqos::cgroup {

/// What the kernel has counted of a cgroup and those below it since it was made, and what it uses
/// now. nullopt where kernel or machine lack the file.
struct CgroupUsage {
  std::chrono::steady_clock::time_point at = {};  ///< when it was read
  std::optional<Micros> cpu = {};                 ///< CPU time
  /// Periods of the cgroup's own CPU quota in which it had work; 0 without a quota.
  std::optional<std::int64_t> periods = {};
  std::optional<std::int64_t> throttled_periods = {};  ///< those in which it had to wait
  std::optional<Bytes> memory = {};
  std::optional<Bytes> inactive_file = {};  ///< page cache that was not used lately
  std::optional<Bytes> swap = {};
  /// Processes that the OOM killer has ended: on v1 without those of the cgroups below.
  std::optional<std::int64_t> oom_kills = {};
  std::optional<std::int64_t> pids = {};  ///< processes and threads
  std::optional<Pressure> cpu_pressure = {};
  std::optional<Pressure> memory_pressure = {};
  friend bool operator==(const CgroupUsage&, const CgroupUsage&) = default;
};

/// nullopt if nothing of it can be read, as where the cgroup does not exist.
[[nodiscard]] std::optional<CgroupUsage> usage_of(const CgroupView& cgroup);

}  // namespace podqos::cgroup
