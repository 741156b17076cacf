#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/core/plan.h"
#include "common/core/record.h"

namespace podqos::core {

/// "/a/b/c" → {"/a/b/c", "/a/b", "/a"}: a cgroup and its parents up to the hierarchy's root.
[[nodiscard]] std::vector<std::string> with_parents(std::string_view path);

/// Enters the tree into `tiers`, and plans to create and mark its root and tiers, unless pods use
/// them already. Comes before the new pod is counted.
/// @param exists  whether a cgroup exists; asked for the parents of the root
/// @return nullopt if there is nothing to make
[[nodiscard]] std::optional<Plan> plan_root(TiersRecord& tiers, const std::string& kubepods,
                                            const std::function<bool(const std::string&)>& exists);

/// Forgets the tree with this root, which was removed.
void forget_root(TiersRecord& tiers, std::string_view kubepods);

}  // namespace podqos::core
