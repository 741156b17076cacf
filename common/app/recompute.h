#pragma once

#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/core/events/reconciliation.h"
#include "common/core/record.h"

namespace podqos::app {

using core::EngineList;
using core::Ids;
using core::ReconcileReport;

/// Whether warnings of a recomputation are logged, or only reported. What calls for an operator
/// would otherwise be logged once a minute by the timer.
enum class Warnings : std::uint8_t { kLogged, kReported };

/// Lets a pod follow what runtimes have changed of its containers: follow_runtime(), which reads
/// files of each container. nullptr where a start waits; the programs of events do not have it.
using FollowRuntime = void (*)(Transaction&, core::PodRecord&, ReconcileReport&);

/// Makes records and cgroups match the running containers: removes ended containers, restores lost
/// records from their copies in the cgroups, recomputes the sums, writes all values and removes
/// what is left over.
/// @return the report, also if single pods failed: see `unreadable` and `failed`
[[nodiscard]] Result<ReconcileReport> recompute(Transaction& transaction,
                                                Warnings warnings = Warnings::kLogged,
                                                FollowRuntime follow = nullptr);

/// Recomputes with an engine's list of containers. A container that was placed for this engine and
/// is not confirmed yet is kept if it is in the list; if it is not, and the listener placed it, it
/// is dropped.
/// @return ids of the live containers.
[[nodiscard]] Result<Ids> recompute_beside(Transaction& transaction, const EngineList& list);

/// Recomputes if an earlier transaction was interrupted, or if the state was lost while cgroups
/// still exist, at most once per transaction.
/// @param record_lost  a single record is: its pod's cgroup has a copy of it
[[nodiscard]] Status recover(Transaction& transaction, bool record_lost = false);

}  // namespace podqos::app
