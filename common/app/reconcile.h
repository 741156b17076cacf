#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "common/app/log.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/core/events/event.h"
#include "common/core/events/reconciliation.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::app {

using core::EngineList;
using core::Ids;
using core::ReconcileReport;

/// Which values of pods a recomputation writes: all, or those of pods whose record has changed,
/// which leaves the others to ReconcileReport::unwritten.
enum class Values : std::uint8_t { kAll, kChanged };

/// Whether warnings of a recomputation are logged, or only reported. What calls for an operator
/// would otherwise be logged once a minute by the timer.
enum class Warnings : std::uint8_t { kLogged, kReported };

/// Lets a pod follow what runtimes have changed of its containers: follow_runtime(), which reads
/// files of each container. nullptr where a start waits; the programs of events do not have it.
using FollowRuntime = void (*)(Transaction&, core::PodRecord&, ReconcileReport&);

/// Makes records and cgroups match the running containers: removes ended containers, restores lost
/// records from their copies in the cgroups, recomputes the sums, writes all values and removes
/// what is left over.
/// @return the report, also if single pods failed: see `failed`
[[nodiscard]] Result<ReconcileReport> recompute(Transaction& transaction,
                                                Warnings warnings = Warnings::kLogged,
                                                FollowRuntime follow = nullptr,
                                                Values values = Values::kAll);

/// Records what a recomputation found and changed. It may find the same each time: what the journal
/// has of the last hour is not recorded again.
void record_events(const Transaction& transaction, const std::vector<core::Event>& events);

/// Recomputes with an engine's list of containers. A container that was placed for this engine and
/// is not confirmed yet is kept if it is in the list; if it is not, and the listener placed it, it
/// is dropped.
/// @return ids of the live containers.
[[nodiscard]] Result<Ids> recompute_beside(Transaction& transaction, const EngineList& list);

/// Recomputes if an earlier transaction was interrupted, or if the state was lost while cgroups
/// still exist, at most once per transaction.
/// @param record_lost  a single record is: its pod's cgroup has a copy of it
[[nodiscard]] Status recover(Transaction& transaction, bool record_lost = false);

/// Lets one of podqos's own pods follow what runtimes have changed of its running containers
/// (core::follow_updates), and reports that and what it does not follow. Reads the limits of each
/// container.
void follow_runtime(Transaction& transaction, core::PodRecord& record, ReconcileReport& report);

/// As recompute(), with follow_runtime(), and the lock released each two milliseconds as values are
/// compared, so that starts come in between; then, step by step, finishes what was not done at
/// once, and lowers memory limits of tiers and roots that usage had kept above the rule
/// (Convergence): for 10 s, as long as that gets further.
/// @param patience  for so long it also waits for usage to fall, where a limit stays above the rule
[[nodiscard]] Result<ReconcileReport> reconcile(const core::Settings& settings, Log& log,
                                                Warnings warnings = Warnings::kLogged,
                                                std::chrono::seconds patience = {});

}  // namespace podqos::app
