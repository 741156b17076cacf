#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/units.h"
#include "common/cgroup/machine.h"
#include "common/core/cpu.h"
#include "common/core/pod_config.h"

namespace podqos::app {

/// The current values of one cgroup. nullopt: unlimited, or unavailable (the controller is missing,
/// or the cgroup was just removed).
struct CgroupReading {
  bool exists = false;
  std::optional<CpuShares> cpu_shares;  ///< cgroup v1 cpu.shares
  std::optional<CpuWeight> cpu_weight;  ///< cgroup v2 cpu.weight
  std::optional<Micros> cpu_quota;
  std::optional<Micros> cpu_period;
  std::optional<Bytes> memory_limit;
  std::optional<Bytes> memory_usage;
  std::optional<std::int64_t> pids_limit;
  std::optional<std::int64_t> pids;  ///< pids.current: processes and threads, descendants included
  friend bool operator==(const CgroupReading&, const CgroupReading&) = default;
};

/// Reads the values of `path` (relative to the hierarchies' roots). Never fails: what cannot be
/// read is nullopt; `exists` is false if there is no such cgroup.
/// @note Documentation/admin-guide/cgroup-v2.rst; cgroup-v1/memory.rst, cgroup-v1/pids.rst.
[[nodiscard]] CgroupReading read_cgroup(cgroup::Machine& machine, const std::string& path);

/// The CPU shares of a reading: cpu.shares on v1. On v2 `rule` if its weight equals the one read,
/// otherwise the inverse of the linear formula, which is lossy.
[[nodiscard]] std::optional<CpuShares> shares_of(const CgroupReading& reading,
                                                 const std::optional<CpuShares>& rule,
                                                 core::WeightFormula formula);

/// Compares `reading` with the values that the rules require and returns one clause per difference
/// ("memory limit is 1073741824, the rule says 2147483648"). Memory limits are compared in whole
/// pages, as the kernel stores them. Values absent from `rule` are skipped, except quota and memory
/// limit, whose absence means "unlimited".
/// @param page_size  the kernel's page size in bytes
[[nodiscard]] std::vector<std::string> differences(const CgroupReading& reading,
                                                   const core::CgroupValues& rule,
                                                   core::WeightFormula formula, Bytes page_size);

/// Pressure stall information: the time for which tasks have waited for a resource since the cgroup
/// was created.
/// @note Documentation/accounting/psi.rst
struct Pressure {
  Micros waiting;  ///< "some": at least one task waited
  std::optional<Micros>
      stalled;  ///< "full": all tasks waited at once; absent for CPU before Linux 5.13
  friend bool operator==(const Pressure&, const Pressure&) = default;
};
/// Parses a pressure file (cpu.pressure, memory.pressure, io.pressure); nullopt if it is malformed.
[[nodiscard]] std::optional<Pressure> parse_pressure(std::string_view text);

/// The current values of a tier that go beyond those of every cgroup. nullopt: unavailable (cgroup
/// v1 has no protection and no pressure, a kernel may lack PSI).
struct TierReading {
  CgroupReading values;
  std::optional<std::int64_t> cpu_usage_ns;
  std::optional<Bytes> memory_min;
  std::optional<Bytes> memory_low;
  std::optional<std::int64_t> oom_kills;  ///< in the tier and below
  std::optional<Pressure> cpu_pressure;
  std::optional<Pressure> memory_pressure;
  std::optional<Pressure> io_pressure;
};

/// Reads about a dozen small files, regardless of the number of pods in the tier.
[[nodiscard]] TierReading read_tier(cgroup::Machine& machine, const std::string& path);

}  // namespace podqos::app
