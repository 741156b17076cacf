#pragma once

#include <string>

#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/core/events/decide_reconciliation.h"
#include "common/core/events/event.h"
#include "common/core/record.h"

namespace podqos::app {

/// Adds an event with this text to the report.
void note_event(core::ReconcileReport& report, core::Event event, std::string text);
/// Adds what has failed of a pod.
void note_failure(core::ReconcileReport& report, const std::string& uid, const Error& error);

/// Compares a recorded pod with the kernel, writes what differs of its values, and reports that and
/// what the machine has refused, which a later transaction retries.
/// @param stored  the record as it is stored; nullptr if there is none
/// @return the errors of the record store
[[nodiscard]] Status write_anew(Transaction& transaction, core::PodRecord& record,
                                const core::PodRecord* stored, core::ReconcileReport& report);

}  // namespace podqos::app
