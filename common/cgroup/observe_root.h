#pragma once

#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "common/core/events/cgroup_write.h"
#include "common/core/record.h"

// What is observed of the root cgroup of the node's pods.
namespace podqos::cgroup {

/// True if the cgroup has podqos's mark.
[[nodiscard]] Result<bool> is_marked(Machine& machine, const std::string& cgroup);

/// Who has created a cgroup that may become the root.
/// @param container  the cgroup that the engine names for a container, or where it runs: below the
///         root, the engine may have created that on its way there
[[nodiscard]] Result<core::CgroupOrigin> origin_of_root(
    Machine& machine, const std::string& root, const std::optional<std::string>& container);

/// True if podqos, or an engine on its way to the root, has created a cgroup above the root: it has
/// the mark, or neither values nor anything else in it.
[[nodiscard]] bool is_made_above(Machine& machine, const std::string& cgroup,
                                 const std::string& kubepods);

/// The outermost of the marked cgroups directly above the root; "" if there is none.
[[nodiscard]] std::string marked_top(Machine& machine, const std::string& kubepods);

/// The first cgroup below the root that is not a tier; nullopt if there is none.
[[nodiscard]] std::optional<std::string> holder_of(Machine& machine, const std::string& kubepods);

/// Observes what the share of podqos's pods follows from. The kubelet's root counts while it
/// contains pods of the kubelet and podqos has not made it.
[[nodiscard]] core::NodeCpu observe_node_cpu(Machine& machine, const core::NodeState& state,
                                             const core::Settings& settings,
                                             const core::NodeCapacity& capacity);

}  // namespace podqos::cgroup
