#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/text.h"
#include "common/core/cgroups/plan.h"

namespace podqos::core {

/// Version of the hierarchy that a controller is attached to.
enum class CgroupVersion : std::uint8_t { kV1, kV2 };

/// The hierarchy of each controller on this machine; nullopt if the machine lacks the controller.
struct CgroupLayout {
  std::optional<CgroupVersion> cpu = std::nullopt;
  std::optional<CgroupVersion> memory = std::nullopt;
  std::optional<CgroupVersion> hugetlb = std::nullopt;
  std::optional<CgroupVersion> pids = std::nullopt;
  std::optional<CgroupVersion> cpuset = std::nullopt;
  std::optional<CgroupVersion> io = std::nullopt;
  std::vector<std::string> hugepage_labels = {};  ///< page sizes of the host: "2MB", "1GB"

  /// The member for `controller`.
  [[nodiscard]] std::optional<CgroupVersion> version_of(Controller controller) const;
  friend bool operator==(const CgroupLayout&, const CgroupLayout&) = default;
};

/// What is known of a controller.
struct ControllerRow {
  Controller controller = Controller::kCpu;
  std::string_view v1_name;  ///< among the mount options of a v1 hierarchy
  std::string_view v2_name;  ///< in cgroup.controllers
  std::optional<CgroupVersion> CgroupLayout::* version = nullptr;
  /// Enabled only above cgroups with a value of it. The others are in every cgroup that podqos
  /// makes, and processes move in their v1 hierarchies too.
  bool on_demand = false;
};

/// Every controller, in the order in which they are enabled.
inline constexpr std::array kControllers = {
    ControllerRow{Controller::kCpu, "cpu", "cpu", &CgroupLayout::cpu},
    ControllerRow{Controller::kMemory, "memory", "memory", &CgroupLayout::memory},
    ControllerRow{Controller::kPids, "pids", "pids", &CgroupLayout::pids},
    ControllerRow{Controller::kHugetlb, "hugetlb", "hugetlb", &CgroupLayout::hugetlb},
    ControllerRow{Controller::kCpuset, "cpuset", "cpuset", &CgroupLayout::cpuset},
    ControllerRow{Controller::kIo, "blkio", "io", &CgroupLayout::io, /*on_demand=*/true},
};
/// The row of `controller`.
[[nodiscard]] constexpr const ControllerRow& row_of(Controller controller) {
  return *std::ranges::find(kControllers, controller, &ControllerRow::controller);
}

inline std::optional<CgroupVersion> CgroupLayout::version_of(Controller controller) const {
  return this->*row_of(controller).version;
}

/// The limit of huge pages of a size: "hugetlb.2MB.max", "hugetlb.2MB.limit_in_bytes".
/// @note Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/hugetlb.rst
[[nodiscard]] inline std::string hugepage_file(std::string_view label, CgroupVersion version) {
  return cat("hugetlb.", label, version == CgroupVersion::kV1 ? ".limit_in_bytes" : ".max");
}
/// The limit of reserved pages: "hugetlb.2MB.rsvd.max". Kernels before 5.7 have none.
[[nodiscard]] inline std::string reserved_hugepage_file(std::string_view label,
                                                        CgroupVersion version) {
  return hugepage_file(cat(label, ".rsvd"), version);
}
/// The label in the name of either: "2MB"; "" for any other file.
[[nodiscard]] inline std::string_view hugepage_label_in(std::string_view file) {
  std::string_view rest = file;
  if (read_until(rest, '.') != "hugetlb") return {};
  const std::string_view label = read_until(rest, '.');
  for (const auto version : {CgroupVersion::kV1, CgroupVersion::kV2})
    if (file == hugepage_file(label, version) || file == reserved_hugepage_file(label, version))
      return label;
  return {};
}

/// Files of the cgroup v2 memory controller that some kernels lack. The root cgroup has neither.
struct MemoryFiles {
  bool swap_max = false;   ///< memory.swap.max: missing without swap accounting
  bool oom_group = false;  ///< memory.oom.group: since Linux 4.19
  friend bool operator==(const MemoryFiles&, const MemoryFiles&) = default;
};

/// Who has created a cgroup that podqos needs for its own pods.
enum class CgroupOrigin : std::uint8_t {
  kNone,    ///< it does not exist
  kPodqos,  ///< it has podqos's mark, or a copy of a pod's record
  /// A runtime, because config.json names it or a cgroup below it: it still has the values of a new
  /// cgroup and, as a root, holds nothing but tiers and pods.
  kEngine,
  kOther,
};

// Extended attributes of cgroups: what podqos has to know of them even if the state directory is
// lost. xattr(7), trusted.*: readable and writable with CAP_SYS_ADMIN only. The last is oomd's.

/// Marks the root, and the cgroups above it, as made by podqos.
constexpr const char* kMadeAttribute = "trusted.podqos.made";
constexpr const char* kMade = "1";

/// Holds a copy of the pod's record, on the pod's cgroup.
constexpr const char* kRecordAttribute = "trusted.podqos.record";
/// What its value begins with while it is unknown which values the cgroup has; the copy follows, if
/// the kernel takes that much.
constexpr const char* kUnwrittenRecord = "unwritten";

/// Tells that podqos has set the weight of ioWeight, or has set it back to the default.
constexpr const char* kIoWeightAttribute = "trusted.podqos.ioweight";
constexpr const char* kIoWeightSet = "1";
constexpr const char* kIoWeightReset = "0";

/// Tells that podqos has told systemd-oomd about the cgroup (eviction), or has taken that back.
constexpr const char* kEvictionAttribute = "trusted.podqos.eviction";
constexpr const char* kEvictionSet = "1";
constexpr const char* kEvictionReset = "0";

/// Tells systemd-oomd to take the cgroup last: "1"; "0" as if there were none.
/// @note systemd src/oom/oomd-util.c oomd_fetch_cgroup_oom_preference
constexpr const char* kOomdAvoidAttribute = "user.oomd_avoid";

}  // namespace podqos::core
