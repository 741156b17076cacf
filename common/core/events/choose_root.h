#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/core/cgroups/layout.h"
#include "common/core/cgroups/naming.h"
#include "common/core/cgroups/plan.h"
#include "common/core/record.h"

namespace podqos::core {

/// Chooses the root for podqos's own pods of a driver: the one in use while it has pods, otherwise
/// <cgroupRoot>/kubepods. The pods of the other driver have a tree of their own. check_root() comes
/// next for a root without a tree in `state`; then it is made where it is missing.
/// @param state  the trees, and whether they have pods
/// @param driver  of the container's runtime
/// @return kInvalidArgument if `cgroup_root` is needed and cannot be a slice
[[nodiscard]] Result<std::string> choose_root(const NodeState& state, std::string_view cgroup_root,
                                              Driver driver);

/// Checks that podqos has created the root, or may create or take it.
/// @return kConflict with the remedy if it is another program's
[[nodiscard]] Status check_root(const std::string& root, CgroupOrigin origin);

/// "/a/b/c" → {"/a/b/c", "/a/b", "/a"}: a cgroup and its parents up to the hierarchy's root.
[[nodiscard]] std::vector<std::string> with_parents(std::string_view path);

/// Enters the tree of a root without pods into `state`, and plans to create and mark its root and
/// tiers. Comes before the new pod is counted.
/// @param missing  those of with_parents() that do not exist
[[nodiscard]] Plan plan_root(NodeState& state, const std::string& kubepods,
                             std::span<const std::string> missing);

/// Forgets the tree with this root, which was removed.
void forget_root(NodeState& state, std::string_view kubepods);

}  // namespace podqos::core
