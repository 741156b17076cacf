#pragma once

#include <cstdint>
#include <string_view>

#include "common/sys/directory.h"

namespace podqos::cgroup {

/// What one plan may spend on cgroups that are nested in those that it removes: containers make as
/// many as they like, and the lock is held. A look at a cgroup takes one step, its removal eight,
/// for that is what the kernel needs for it: 512 removals, or a look 2,000 levels down.
inline constexpr int kNestedSteps = 4096;
inline constexpr int kRemovalSteps = 8;

/// Removes what is nested in cgroup `name`, from the bottom, as far as the kernel allows it and
/// there are steps left. Remembers nothing: what is removed is not in the next call's way.
/// @param steps  left; reduced by what was spent
/// @return whether any was removed
bool remove_nested(const sys::Directory& parent, std::string_view name, int& steps);

}  // namespace podqos::cgroup
