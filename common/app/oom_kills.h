#pragma once

#include <cstdint>

#include "common/app/log.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::app {

/// Processes of a pod that the OOM killer has ended, reported or not.
[[nodiscard]] std::int64_t count_oom_kills(cgroup::Machine& machine, const core::PodRecord& record);

/// Notes for a pod that comes what has happened before: kills that it has nothing to do with.
void note_earlier_oom_kills(Transaction& transaction, core::PodRecord& record);

/// Reports the processes of a pod that were OOM-killed since it was looked at last, and by whose
/// limit, if the kernel's log tells. Where it does not, cgroup v2 counts them, and v1 those of
/// containers that have a cgroup. Call it while the pod's cgroup exists.
/// @param record  what was reported is noted there
/// @return whether there was something to report
bool report_oom_kills(Transaction& transaction, core::PodRecord& record);

/// The same for all pods, as processes of containers that live on may be killed. Takes no lock if
/// there is nothing to report.
/// @return the errors of opening and finishing a transaction
[[nodiscard]] Status report_all_oom_kills(const core::Settings& settings, Log& log,
                                          const Timeouts& timeouts);

}  // namespace podqos::app
