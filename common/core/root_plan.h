#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/plan.h"
#include "common/core/record.h"

namespace podqos::core {

/// "/a/b/c" → {"/a/b/c", "/a/b", "/a"}: a cgroup and its parents up to the hierarchy's root.
[[nodiscard]] std::vector<std::string> with_parents(std::string_view path);

/// True if pods are below the root. Without them its tiers may be missing, even if another
/// program's cgroup keeps it.
[[nodiscard]] bool is_root_in_use(const TiersRecord& tiers, std::string_view kubepods);

/// Enters the tree of a root without pods into `tiers`, and plans to create and mark its root and
/// tiers. Comes before the new pod is counted.
/// @param missing  those of with_parents() that do not exist
[[nodiscard]] Plan plan_root(TiersRecord& tiers, const std::string& kubepods,
                             std::span<const std::string> missing);

/// Forgets the tree with this root, which was removed.
void forget_root(TiersRecord& tiers, std::string_view kubepods);

}  // namespace podqos::core
