#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/cgroup/open_hierarchy.h"
#include "common/core/cgroups/plan.h"

namespace podqos::cgroup {

/// What a cgroup is for. On v2 a cgroup has either processes or children with controllers.
enum class CgroupUse : std::uint8_t {
  kInner,  ///< has child cgroups, which get the controllers
  kLeaf,   ///< holds processes
};

/// Creates the cgroup `path` and its missing ancestors in one hierarchy.
///
/// In a v1 cpuset hierarchy, a cgroup without CPUs gets those of its parent. On v2, as many of the
/// controllers that every cgroup gets (not core::ControllerRow::on_demand), and of `also`, as the
/// hierarchy has are enabled in cgroup.subtree_control of all ancestors, and of `path` itself if it
/// is an inner cgroup. Retried if an ancestor is removed, or loses a controller, concurrently.
/// @return an error names the full path and, for EBUSY, the processes that prevent enabling the
/// controllers.
/// @note Documentation/admin-guide/cgroup-v2.rst "No Internal Process Constraint";
/// cgroup-v1/cpusets.rst.
[[nodiscard]] Status ensure_cgroup(OpenHierarchy& hierarchy, const std::string& path, CgroupUse use,
                                   std::optional<core::Controller> also);

}  // namespace podqos::cgroup
