#pragma once

#include <cstdint>
#include <string>

#include "common/base/error.h"
#include "common/cgroup/open_hierarchy.h"

namespace podqos::cgroup {

/// What the cgroup is for. On v2 a cgroup has either processes or children with controllers.
enum class CgroupUse : std::uint8_t {
  kInner,  ///< cgroups below it: its children get the controllers
  kLeaf,   ///< processes
};

/// Makes cgroup `path` and the ancestors it lacks, mode 0755, in one hierarchy. A cgroup of a v1
/// cpuset hierarchy that has no CPUs gets its parent's; on v2 cpu, memory, pids, hugetlb and
/// cpuset, as far as the hierarchy has them, are enabled in the subtree_control of all ancestors,
/// and of `path` itself if it is an inner one. Starts again when somebody removes an ancestor
/// meanwhile.
/// @return how many directories were made; errors name the whole path in the file system, and on
/// EBUSY the processes
///         that are in the way.
/// @note Documentation/admin-guide/cgroup-v2.rst "No Internal Process Constraint";
/// cgroup-v1/cpusets.rst.
[[nodiscard]] Result<std::int64_t> ensure_cgroup(OpenHierarchy& hierarchy, const std::string& path,
                                                 CgroupUse use);

}  // namespace podqos::cgroup
