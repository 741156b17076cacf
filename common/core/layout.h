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

}  // namespace podqos::core
