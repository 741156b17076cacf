#pragma once

#include <cstdint>
#include <string>

#include "common/app/log.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::app {

/// Processes of a pod that the OOM killer has ended, reported or not.
[[nodiscard]] std::int64_t count_oom_kills(cgroup::Machine& machine, const core::PodRecord& record);

/// Notes for a pod that comes what has happened in its cgroups before: kills that no container of
/// it has to do with.
void note_earlier_ooms(Transaction& transaction, core::PodRecord& record);

/// Reports if processes of a container were OOM-killed. Call it while the pod's cgroup exists; on
/// cgroup v1, which counts in the container's cgroup alone, that one must exist, too. What cannot
/// be read is not reported.
/// @param record  its pod's; what was reported is noted there
/// @return whether there was something to report
bool report_oom_kill(Transaction& transaction, core::PodRecord& record,
                     core::ContainerRecord& container);

/// The same for a container whose runtime is about to remove the cgroup. Does nothing for one that
/// runs, or is not podqos's.
[[nodiscard]] Status report_before_removal(const core::Settings& settings, Log& log,
                                           const std::string& id, const Timeouts& timeouts);

/// The same for containers that run, as only some of their processes were killed. Takes no lock if
/// there is nothing to report. On cgroup v1, kills in cgroups within a container's are not counted.
/// @return the errors of opening and finishing a transaction
[[nodiscard]] Status report_oom_kills(const core::Settings& settings, Log& log,
                                      const Timeouts& timeouts);

}  // namespace podqos::app
