#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/cgroups/layout.h"
#include "common/core/cgroups/plan.h"
#include "common/core/kubernetes/cgroup_values.h"

// The files of cgroups that hold values, one row each: all that is known of where a value stands
// and how it is spelled. What a value is to be, the rules say (cgroup_values.h, tier.h,
// pod_values.h). Huge pages have a file for each page size: layout.h.
namespace podqos::core {

/// The rows that code asks for by name; kOther is known by its files only.
enum class Value : std::uint8_t {
  kOther,
  kCpuIdle,    ///< 1 on v2 only
  kCpuShares,  ///< on v2 the weight that follows from the shares
  kCpuPeriod,
  kCpuQuota,  ///< on v2 quota and period
  kCpuBurst,
  kMemoryLimit,
  kSwapLimit,
  kPidsLimit,
};

/// A number of `values`; negative is "unlimited", nullopt "not set".
using NumberOf = std::optional<std::int64_t> (*)(const CgroupValues& values, WeightFormula formula);

/// A value on one cgroup version.
struct ValueFile {
  std::string_view name = {};      ///< "": this version has no such file
  std::string_view unset = {};     ///< content in a new cgroup; of a limit that is "no limit"
  NumberOf number = nullptr;       ///< what podqos writes; nullptr: nothing of its own
  std::string_view property = {};  ///< of a systemd unit; "": none
  OnRefusal on_refusal = OnRefusal::kFail;
  NumberOf told = nullptr;  ///< the property, where it is not `number`
  /// Instead of `number` where the file holds more than a number; "" for "not set".
  std::string (*text)(const CgroupValues& values) = nullptr;
};

/// A value: its file on cgroup v1 and on v2.
struct ValueRow {
  Value value = Value::kOther;
  Controller controller = Controller::kCpu;
  ValueFile v1 = {};
  ValueFile v2 = {};
  bool whole_pages = false;  ///< the kernel rounds it down to pages

  [[nodiscard]] const ValueFile& on(CgroupVersion version) const {
    return version == CgroupVersion::kV1 ? v1 : v2;
  }
};

/// Every row, in an order in which a new cgroup accepts the values: period before quota, memory
/// before memory with swap.
/// @note runtime-spec config-linux.md; opencontainers/cgroups fs/, fs2/; crun src/libcrun/cgroup-*;
///       properties and drop-ins: systemd.resource-control(5), src/core/dbus-cgroup.c
[[nodiscard]] std::span<const ValueRow> value_table();

/// The row of a value that code names, that is not kOther.
[[nodiscard]] const ValueRow& row_of(Value value);
/// Its file on this version; "" if it has none there.
[[nodiscard]] std::string_view file_of(Value value, CgroupVersion version);
/// The row that has this file on `version`; nullptr for an unknown file.
[[nodiscard]] const ValueRow* row_with(std::string_view file, CgroupVersion version);

/// What podqos writes to `file` for these values; "" for nothing.
[[nodiscard]] std::string content_for(const ValueFile& file, const CgroupValues& values,
                                      WeightFormula formula);
/// Whether systemd keeps a value of the table in a drop-in of this name.
[[nodiscard]] bool is_drop_in(std::string_view name);

/// A quota that limits; "none" (0) and "unlimited" (-1) are nullopt.
[[nodiscard]] std::optional<Micros> limiting_quota(const CgroupValues& values);

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

/// The same values as properties of a unit. v1 controllers have other ones (CPUShares,
/// MemoryLimit). Of `unified`, cpu.weight, pids.max and the memory limits become properties.
/// @note opencontainers/cgroups systemd/{common,v1,v2}.go: CPUQuotaPerSecUSec rounded up to 10 ms.
[[nodiscard]] std::vector<UnitProperty> unit_properties(const CgroupValues& values,
                                                        const CgroupLayout& layout,
                                                        WeightFormula formula);
/// The values after systemd's rounding of the quota: what the files hold in the end.
[[nodiscard]] CgroupValues rounded_by_systemd(CgroupValues values);

}  // namespace podqos::core
