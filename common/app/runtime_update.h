#pragma once

#include "common/app/transaction.h"
#include "common/core/events/reconciliation.h"
#include "common/core/record.h"

namespace podqos::app {

/// Lets one of podqos's own pods follow what runtimes have changed of its running containers
/// (core::follow_updates), and reports that and what it does not follow. Reads the limits of each
/// container.
void follow_runtime(Transaction& transaction, core::PodRecord& record,
                    core::ReconcileReport& report);

}  // namespace podqos::app
