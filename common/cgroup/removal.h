#pragma once

#include <span>
#include <string>

#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "common/core/record.h"

namespace podqos::cgroup {

/// Removes the unpopulated cgroups directly below a pod's: left behind by killed runtimes, or of
/// ended containers that were not deleted, with what containers have nested in them. The kernel
/// refuses to remove populated ones. A monitor is moved back to the root cgroup first: it ends
/// slightly later than the pod, and would keep the pod's cgroup from being removed.
/// @param except  containers whose cgroups are kept, because a runtime may be about to use an empty
///         one
[[nodiscard]] Result<Report> remove_children(Machine& machine, const std::string& pod_cgroup,
                                             std::span<const core::ContainerRecord> except = {});

/// As remove_children(), repeated until no child is left: that of a killed process is busy until
/// the process has exited. Children that remain are not an error.
[[nodiscard]] Result<Report> clear_children(Machine& machine, const std::string& pod_cgroup);

/// True if an empty cgroup is still there although it is a unit of systemd, which releases units
/// and their directories asynchronously after the last process has ended.
[[nodiscard]] bool is_held_by_systemd(Machine& machine, const std::string& cgroup);

}  // namespace podqos::cgroup
