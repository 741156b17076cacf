#pragma once

#include <string>

#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/ownership.h"
#include "common/core/record.h"

namespace podqos::app {

/// True if the cgroup has the kernel's default values: no limit, default shares or weight.
[[nodiscard]] bool is_untouched(cgroup::Machine& machine, const std::string& cgroup);

/// Observes a pod's cgroup as far as core::is_foreign_cgroup() and core::check_pod_cgroup() need
/// it: a copy of the record decides, and what is beyond it is read only without one.
[[nodiscard]] core::PodCgroupSnapshot observe_pod_cgroup(cgroup::Machine& machine,
                                                         const std::string& cgroup);

/// Moves the container's monitor (conmon or a containerd shim), which is the parent of the runtime,
/// into the pod's cgroup, so that its usage is charged to the pod. Does nothing unless
/// chargeMonitor is set, for adopted pods, and if the parent is another program, such as a shell.
/// @param runtime  the process that runs the hook
[[nodiscard]] Status charge_monitor(Transaction& transaction, const core::PodRecord& record,
                                    Pid runtime);

/// True if the pod's cgroup holds a process other than the monitor's.
[[nodiscard]] Result<bool> holds_container(Transaction& transaction, const std::string& pod_cgroup);

}  // namespace podqos::app
