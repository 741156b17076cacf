#pragma once

#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "common/core/root_choice.h"

// What is observed of the root cgroup of the node's pods.
namespace podqos::cgroup {

/// True if the cgroup has podqos's mark.
[[nodiscard]] Result<bool> is_marked(Machine& machine, const std::string& cgroup);

/// Observes a cgroup that may become the root, or may be podqos's root of which the state was lost.
/// @param just_made  cgroup of a container that its runtime has just started: if the root holds
///         nothing else, that runtime created the root.
[[nodiscard]] Result<core::RootSnapshot> observe_root(Machine& machine, const std::string& root,
                                                      const std::optional<std::string>& just_made);

/// The outermost of the marked cgroups directly above the root; "" if there is none.
[[nodiscard]] std::string marked_top(Machine& machine, const std::string& kubepods);

/// The first cgroup below the root that is not a tier; nullopt if there is none.
[[nodiscard]] std::optional<std::string> holder_of(Machine& machine, const std::string& kubepods);

}  // namespace podqos::cgroup
