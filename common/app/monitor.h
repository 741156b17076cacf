#pragma once

#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/record.h"

namespace podqos::app {

/// Moves the container's monitor (conmon or a containerd shim), which is the parent of the runtime,
/// into the pod's cgroup, so that its usage is charged to the pod. Does nothing unless
/// chargeMonitor is set, for adopted pods, and if the parent is another program, such as a shell.
/// @param runtime  the process that runs the hook
[[nodiscard]] Status charge_monitor(Transaction& transaction, const core::PodRecord& record,
                                    Pid runtime);

/// Moves the monitor back to the root cgroup: it ends slightly later than the pod, and would keep
/// the pod's cgroup from being removed.
[[nodiscard]] Status free_monitor(Transaction& transaction, const std::string& pod_cgroup);

/// True if the pod's cgroup holds a process other than the monitor's.
[[nodiscard]] Result<bool> holds_container(Transaction& transaction, const std::string& pod_cgroup);

}  // namespace podqos::app
