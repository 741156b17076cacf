#pragma once

#include "common/app/transaction.h"
#include "common/core/events/decide_reconciliation.h"
#include "common/core/record.h"

namespace podqos::app {

/// What a reconciliation knows of the pods, and continues.
struct KnownPods {
  core::PodRecords& records;
  core::ReconcileReport& report;
};

/// Deals with what no record tells of: pod cgroups in a tree of podqos's are restored from the copy
/// of their record, or removed where nothing lives (core::decide_restoration()); slices of ended
/// pods that systemd still lists although record and cgroup are gone are stopped. What cannot be
/// read or removed is reported.
void restore_orphans(Transaction& transaction, const core::TreeRecord& tree,
                     const KnownPods& known);

/// Erases the entries of the index that lead to no container. Each container that is recorded has
/// one: a record is only read where its row has another number of them.
/// @param report  gets what cannot be read or erased
void clean_index(Transaction& transaction, core::ReconcileReport& report);

}  // namespace podqos::app
