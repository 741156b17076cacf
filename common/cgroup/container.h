#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/cgroup/machine.h"
#include "common/core/events/decide_departure.h"
#include "common/core/pods/apply_resize.h"
#include "common/core/record.h"
#include "common/sys/process.h"

// What is observed of a recorded container: its processes, and the cgroups that they are in.
namespace podqos::cgroup {

/// True if the container's init runs, or while it is pending, the process that creates it, if that
/// does not take too long.
[[nodiscard]] bool lives(Machine& machine, const core::ContainerRecord& container);
/// True if any container of the pod does.
[[nodiscard]] bool has_living_container(Machine& machine, const core::PodRecord& record);

/// The init process of a container, found in its cgroup.
/// @return nullopt if the cgroup has no process, or if the cgroup is not the container's
///         alone; the errors of Machine::processes(), which do not tell that it has ended
[[nodiscard]] Result<std::optional<core::Process>> find_init(
    Machine& machine, const core::ContainerRecord& container);

/// Whether a container that is reported as ended has ended. Processes that outlive its init without
/// being killed may stay: they are not waited for.
/// @param caller  the process that reports it
[[nodiscard]] core::EndState observe_end_state(Machine& machine,
                                               const core::ContainerRecord& container, Pid caller);

/// Finds a cgroup of a container's process that is neither the recorded one nor below it, nor
/// elsewhere in its pod; nullopt if there is none. Only the hierarchies with the cpu or memory
/// controller are checked, because they bound the pod.
/// @param pod_cgroup  empty for a pod without a cgroup
/// @param recorded  cgroup of the container when it started
[[nodiscard]] std::optional<std::string> misplaced_cgroup(
    const std::vector<sys::ProcCgroup>& cgroups, const std::string& pod_cgroup,
    const std::string& recorded);

/// Checks whether another program has moved a container out of its cgroup since it started.
/// @return a sentence for the operator: where it runs, where it belongs, and the remedy; nullopt if
///         it is in place.
[[nodiscard]] std::optional<std::string> describe_misplaced(Machine& machine,
                                                            const core::PodRecord& record,
                                                            const core::ContainerRecord& container);

/// held_by() of each container, in the record's order; empty for those whose cgroup does not tell
/// (core::tells_of_updates()).
[[nodiscard]] std::vector<core::HeldResources> held_by_containers(Machine& machine,
                                                                  const core::PodRecord& record);

}  // namespace podqos::cgroup
