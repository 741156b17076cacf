#pragma once

#include "common/core/cgroups/layout.h"

namespace podqos::core::layouts {

inline constexpr CgroupVersion kV1 = CgroupVersion::kV1;
inline constexpr CgroupVersion kV2 = CgroupVersion::kV2;

/// A host that has every controller but io, all of one version.
inline CgroupLayout layout_of(CgroupVersion version) {
  return {.cpu = version,
          .memory = version,
          .hugetlb = version,
          .pids = version,
          .cpuset = version,
          .hugepage_labels = {"2MB", "1GB"}};
}

/// The same with huge pages of this size alone.
inline CgroupLayout with_2mb_pages(CgroupVersion version) {
  CgroupLayout layout = layout_of(version);
  layout.hugepage_labels = {"2MB"};
  return layout;
}

}  // namespace podqos::core::layouts
