#pragma once

#include <map>
#include <string>

#include "common/core/cgroup_values.h"
#include "common/core/layout.h"
#include "common/core/plan.h"

namespace podqos::core {

/// Turns values into the writes of the cgroupfs driver for one cgroup, controller by controller, v1
/// or v2 by where the controller lives (a hybrid host mixes them). Order matters: v1 period before
/// quota (retry at the end), memory last. Huge page sizes of the host that the values do not name
/// get 0 (kubelet: maybeSetHugetlb); the files of sizes that the host lacks and the rsvd files are
/// optional. No EnsureCgroup step for the cgroup: making it is the caller's. Where a value's
/// controller is enabled on demand, one for the cgroup's parent precedes the value. A quota of 0 or
/// -1 is written as "none" (v1 -1, v2 max), so that a cgroup that had one loses it.
/// @param reason  why, put behind each step for people ("pod 42: sum of limits").
/// @note v2 files: opencontainers/cgroups fs2/{cpu,memory,pids,hugetlb}.go; v1: fs/.
[[nodiscard]] Plan lower_values(const std::string& path, const CgroupValues& values,
                                const CgroupLayout& layout, WeightFormula formula,
                                const std::string& reason);

/// File → value on a cgroup v2 host, as the cgroupfs driver writes them.
[[nodiscard]] std::map<std::string, std::string, std::less<>> v2_files(
    const CgroupValues& values, const std::vector<std::string>& hugepage_labels,
    WeightFormula formula);

/// The same values as properties of a unit. v1 controllers have other ones (CPUShares,
/// MemoryLimit). Of `unified`, cpu.weight, pids.max and the memory limits become properties.
/// @note opencontainers/cgroups systemd/{common,v1,v2}.go: CPUQuotaPerSecUSec rounded up to 10 ms.
[[nodiscard]] std::vector<UnitProperty> unit_properties(const CgroupValues& values,
                                                        const CgroupLayout& layout,
                                                        WeightFormula formula);
/// The values after systemd's rounding of the quota: what the files hold in the end.
[[nodiscard]] CgroupValues rounded_by_systemd(CgroupValues values);

/// What systemd's driver does on cgroup v2: unit properties as text, and the files after systemd's
/// rounding. "Unlimited" is systemd's infinity, 2^64-1.
struct SystemdWrites {
  std::map<std::string, std::string, std::less<>> properties;
  std::map<std::string, std::string, std::less<>> files;
};
[[nodiscard]] SystemdWrites systemd_writes(const CgroupValues& values,
                                           const std::vector<std::string>& hugepage_labels,
                                           WeightFormula formula);

}  // namespace podqos::core
