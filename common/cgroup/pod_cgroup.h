#pragma once

#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/cgroup/machine.h"
#include "common/core/events/decide_departure.h"

namespace podqos::cgroup {

/// True if the cgroup has the kernel's default values: no limit, default shares or weight.
[[nodiscard]] bool is_untouched(Machine& machine, const std::string& cgroup);

/// True if the cgroup is as a runtime makes, and leaves, the parents of a container's: it has the
/// kernel's default values and no children. In one that an engine prepares for a pod there is one.
[[nodiscard]] bool is_bare(Machine& machine, const std::string& cgroup);

/// Who has created a pod's cgroup.
[[nodiscard]] Result<core::CgroupOrigin> origin_of_pod(Machine& machine, const std::string& cgroup);

/// True if the pod's cgroup holds a process other than the monitor's.
[[nodiscard]] Result<bool> holds_container(Machine& machine, const std::string& pod_cgroup);

/// The memory in use that a limit of the cgroup would cut off, see
/// core::hold_above_usage().
[[nodiscard]] std::optional<Bytes> usage_above(Machine& machine, const std::string& cgroup,
                                               Bytes limit);
/// True if it is known which values the cgroup holds: it has a copy of a record, and none was
/// refused since.
[[nodiscard]] bool is_written(Machine& machine, const std::string& cgroup);

/// Whether tmpfs memory is still charged to a pod's cgroup. kNone if that cannot be read.
[[nodiscard]] core::ShmemCharge tmpfs_memory(Machine& machine, const std::string& pod_cgroup);

/// An engine's process that watches one container or pod: conmon or a containerd shim.
struct Monitor {
  Pid pid;
  std::string cgroup;  ///< its current one
};
/// The monitor that has started a runtime, which is the runtime's parent.
/// @return nullopt if the parent is another program, such as a shell, or has ended
[[nodiscard]] Result<std::optional<Monitor>> monitor_of(Machine& machine, Pid runtime);

}  // namespace podqos::cgroup
