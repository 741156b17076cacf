#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/core/plan.h"

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
  std::vector<std::string> hugepage_labels = {};  ///< page sizes of the host: "2MB", "1GB"

  /// The member for `controller`.
  [[nodiscard]] std::optional<CgroupVersion> version_of(Controller controller) const;
  friend bool operator==(const CgroupLayout&, const CgroupLayout&) = default;
};

/// Files of the cgroup v2 memory controller that some kernels lack. The root cgroup has neither.
struct MemoryFiles {
  bool swap_max = false;   ///< memory.swap.max: missing without swap accounting
  bool oom_group = false;  ///< memory.oom.group: since Linux 4.19
  friend bool operator==(const MemoryFiles&, const MemoryFiles&) = default;
};

}  // namespace podqos::core
