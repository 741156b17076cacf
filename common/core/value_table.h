#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/core/cgroup_values.h"
#include "common/core/layout.h"
#include "common/core/plan.h"

// The files of cgroups that hold values, one row each: all that is known of where a value stands
// and how it is spelled. What a value is to be, the rules say (cgroup_values.h, tier.h,
// pod_values.h). Huge pages have a file for each page size: hugepage_file().
namespace podqos::core {

/// The rows that code asks for by name; kOther is known by its files only.
enum class Value : std::uint8_t {
  kOther,
  kCpuShares,  ///< on v2 the weight that follows from the shares
  kCpuPeriod,
  kCpuQuota,  ///< on v2 quota and period
  kMemoryLimit,
  kSwapLimit,
  kPidsLimit,
};

/// A number of `values`; negative is "unlimited", nullopt "not set".
using NumberOf = std::optional<std::int64_t> (*)(const CgroupValues& values, WeightFormula formula);

/// A value on one cgroup version.
struct ValueFile {
  std::string_view name = {};   ///< "": this version has no such file
  std::string_view unset = {};  ///< content in a new cgroup; of a limit that is "no limit"
  NumberOf number = nullptr;    ///< what podqos writes; nullptr: nothing of its own
  /// Instead of `number` where the file holds more than a number; "" for "not set".
  std::string (*text)(const CgroupValues& values) = nullptr;
  OnRefusal on_refusal = OnRefusal::kFail;
  std::string_view property = {};  ///< of a systemd unit; "": none
  std::string_view drop_in = {};   ///< where systemd keeps the property, below UNIT.d
  NumberOf told = nullptr;         ///< the property, where it is not `number`
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
/// The number of the file's systemd property, as NumberOf.
[[nodiscard]] std::optional<std::int64_t> property_for(const ValueFile& file,
                                                       const CgroupValues& values,
                                                       WeightFormula formula);
/// Whether systemd keeps a value of the table in a drop-in of this name.
[[nodiscard]] bool is_drop_in(std::string_view name);

/// Which limit of huge pages a file holds.
enum class HugePageUse : std::uint8_t {
  kUsed,
  kReserved,  ///< since Linux 5.7
};
/// "hugetlb.2MB.max", "hugetlb.2MB.rsvd.limit_in_bytes".
/// @note Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/hugetlb.rst
[[nodiscard]] std::string hugepage_file(std::string_view label, CgroupVersion version,
                                        HugePageUse use = HugePageUse::kUsed);
/// The label in such a name: "2MB"; "" for any other file.
[[nodiscard]] std::string_view hugepage_label_in(std::string_view file);
/// Content of such a file in a new cgroup.
[[nodiscard]] std::string_view unset_hugepages(CgroupVersion version);

/// The quota after systemd's rounding: it keeps whole 10 ms a second, so the rest is rounded up.
/// @note opencontainers/cgroups systemd/common.go addCpuQuota
[[nodiscard]] Micros quota_of_systemd(Micros quota, Micros period);
/// A quota that limits; "none" (0) and "unlimited" (-1) are nullopt.
[[nodiscard]] std::optional<Micros> limiting_quota(const CgroupValues& values);
/// The period of the quota: the default where none is set.
[[nodiscard]] Micros period_of(const CgroupValues& values);

}  // namespace podqos::core
