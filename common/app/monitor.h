#pragma once

#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/record.h"

namespace podqos::app {

/// The engine's process that started the runtime and stays beside the container (conmon, a
/// containerd shim) goes into the pod's cgroup, so that the pod pays for it. Does nothing unless
/// chargeMonitor is on, for pods that an engine places itself, and for every other parent: that
/// would be somebody's shell.
/// @param runtime  the process that runs the hook.
[[nodiscard]] Status charge_monitor(Transaction& transaction, const core::PodRecord& record,
                                    Pid runtime);

/// Moves the monitor out again, to the root: it outlives the pod by the time that it needs to end.
[[nodiscard]] Status free_monitor(Transaction& transaction, const std::string& pod_cgroup);

/// Does a process of a container live in the pod's cgroup? The monitor's do not count.
[[nodiscard]] Result<bool> holds_container(Transaction& transaction, const std::string& pod_cgroup);

}  // namespace podqos::app
