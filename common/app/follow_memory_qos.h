#pragma once

#include <string>
#include <vector>

#include "common/app/log.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "common/core/kubernetes/memory_qos.h"
#include "common/core/record.h"
#include "common/core/settings.h"

// Memory QoS of containers that run: their values follow the rule, and no memory.high stops one.
namespace podqos::app {

/// Brings memory.min, memory.low and memory.high of the pod's running containers to the rule, where
/// podqos has given them, and raises a memory.high that throttles for longer than
/// memoryHighPatience. Notes both in the record, which the caller saves. What cannot be written is
/// logged, and left to the next call.
void follow_memory_qos(Transaction& transaction, core::PodRecord& record);

/// Gives a container that has just started its Memory QoS in its scope too, where its runtime has
/// given it to a cgroup below that alone, as crun does. Notes it in the record, which the caller
/// saves.
void complete_memory_qos(Transaction& transaction, const core::PodRecord& record,
                         core::ContainerRecord& container);

/// Which values of the pod's running containers follow_memory_qos() would write, one clause for
/// each: "container web, cgroup /…/web.scope: memory.low is 0, the rule says 64Mi". A memory.high
/// that it has raised is right.
[[nodiscard]] std::vector<std::string> describe_memory_qos(cgroup::Machine& machine,
                                                           const core::PodRecord& record,
                                                           const core::MemoryQosParams& params);

/// Does the same as follow_memory_qos() for the pods with containers whose throttling has begun or
/// ended, or lasts too long. Takes no lock if there are none.
/// @return the errors of opening and finishing a transaction
[[nodiscard]] Status relieve_throttled(const core::Settings& settings, Log& log,
                                       const Timeouts& timeouts);

}  // namespace podqos::app
