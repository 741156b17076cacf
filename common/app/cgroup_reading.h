#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/cgroup/cgroupfs.h"
#include "common/core/cpu.h"
#include "common/core/pod_config.h"

namespace podqos::app {

/// What the kernel says of one cgroup now. nullopt: no limit, or not to be had (the controller is
/// missing, the cgroup has just gone).
struct CgroupReading {
  bool exists = false;
  std::optional<CpuShares> cpu_shares;  ///< cgroup v1
  std::optional<CpuWeight> cpu_weight;  ///< cgroup v2
  std::optional<Micros> cpu_quota;
  std::optional<Micros> cpu_period;
  std::optional<Bytes> memory_limit;
  std::optional<Bytes> memory_usage;
  std::optional<std::int64_t> pids_limit;
  std::optional<std::int64_t> pids;  ///< processes and threads in it and below
  friend bool operator==(const CgroupReading&, const CgroupReading&) = default;
};

[[nodiscard]] CgroupReading read_cgroup(cgroup::Cgroupfs& cgroups, const std::string& path);

/// The shares that a reading stands for: v1's own; on v2 `rule` where its weight is the one found,
/// else the linear formula's lossy inverse.
[[nodiscard]] std::optional<CpuShares> shares_of(const CgroupReading& reading,
                                                 const std::optional<CpuShares>& rule,
                                                 core::WeightFormula formula);

/// How `reading` differs from what the rule wants: one clause for each value ("memory limit is
/// 1073741824, the rule says 2147483648"). The kernel keeps memory limits in whole pages, so less
/// than a page is no difference. Values that the rule leaves open are not looked at, except for a
/// quota or memory limit, whose absence means "unlimited".
[[nodiscard]] std::vector<std::string> differences(const CgroupReading& reading,
                                                   const core::CgroupValues& rule,
                                                   core::WeightFormula formula, Bytes page_size);

}  // namespace podqos::app
