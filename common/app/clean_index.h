#pragma once

#include "common/app/transaction.h"
#include "common/core/events/decide_reconciliation.h"

namespace podqos::app {

/// Erases the entries of the index that lead to no container. Each container that is recorded has
/// one: a record is only read where its row has another number of them.
/// @param report  gets what cannot be read or erased
void clean_index(Transaction& transaction, core::ReconcileReport& report);

}  // namespace podqos::app
