#pragma once

#include <functional>

#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "common/core/cgroups/plan.h"

namespace podqos::cgroup {

/// Repeats an attempt with a pause of 10 ms in between, within what the transaction may wait
/// (Machine::wait). All waiting for the kernel or systemd under the lock is done here.
/// @param attempt  returns true if no further attempt is needed
/// @return false if the last attempt wanted another one; an error ends it at once.
[[nodiscard]] Result<bool> retry_until_done(Machine& machine,
                                            const std::function<Result<bool>()>& attempt);

/// Executes a plan, and again while a quota is refused: cgroup v1 counts that of a removed child
/// until its last reference is gone, a few milliseconds, on a busy machine some hundred.
/// @return the errors of Machine::execute(); kBusy for a quota that is still refused.
/// @note kernel/sched/core.c, tg_cfs_schedulable_down.
[[nodiscard]] Result<Report> execute_with_quota(Machine& machine, const core::Plan& plan);

}  // namespace podqos::cgroup
