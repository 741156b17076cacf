#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/core/plan.h"

namespace podqos::core {

enum class CgroupVersion : std::uint8_t { kV1, kV2 };

/// Where the controllers live on this machine; nullopt: the machine lacks the controller.
struct CgroupLayout {
  std::optional<CgroupVersion> cpu = std::nullopt;
  std::optional<CgroupVersion> memory = std::nullopt;
  std::optional<CgroupVersion> hugetlb = std::nullopt;
  std::optional<CgroupVersion> pids = std::nullopt;
  std::optional<CgroupVersion> cpuset = std::nullopt;
  std::vector<std::string> hugepage_labels = {};  ///< page sizes of the host: "2MB", "1GB"

  [[nodiscard]] std::optional<CgroupVersion> version_of(Controller controller) const;
  friend bool operator==(const CgroupLayout&, const CgroupLayout&) = default;
};

/// The files of cgroup v2 that not every kernel gives a cgroup with the memory controller. The root
/// of the hierarchy has neither.
struct MemoryFiles {
  bool swap_max = false;   ///< memory.swap.max: a kernel without swap accounting has none
  bool oom_group = false;  ///< memory.oom.group: since Linux 4.19
  friend bool operator==(const MemoryFiles&, const MemoryFiles&) = default;
};

}  // namespace podqos::core
