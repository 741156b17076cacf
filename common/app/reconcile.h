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

/// Whether warnings of a recomputation are logged, or only reported. What calls for an operator
/// would otherwise be logged once a minute by the timer.
enum class Warnings : std::uint8_t { kLogged, kReported };

/// Lets a pod follow what runtimes have changed of its containers: follow_runtime(), which reads
/// files of each container. nullptr where a start waits; the programs of events do not have it.
using FollowRuntime = void (*)(Transaction&, core::PodRecord&, ReconcileReport&);

/// Makes records and cgroups match the running containers: removes ended containers, restores lost
/// records from their copies in the cgroups, writes all values and removes what is left over.
/// @return the report, also if single pods failed: see `failed`
[[nodiscard]] Result<ReconcileReport> recompute(Transaction& transaction,
                                                Warnings warnings = Warnings::kLogged,
                                                FollowRuntime follow = nullptr);
/// The same for one pod.
[[nodiscard]] Result<ReconcileReport> recompute_pod(Transaction& transaction,
                                                    const std::string& uid, Warnings warnings,
                                                    FollowRuntime follow);
/// The same for what no pod owns: trees, pod cgroups without a record, and the index.
[[nodiscard]] Result<ReconcileReport> recompute_rest(Transaction& transaction, Warnings warnings);

/// Makes these pods as recorded, and the tiers above them: releases those of which nothing lives.
[[nodiscard]] Status make_as_recorded(Transaction& transaction,
                                      const std::vector<std::string>& uids);

/// Records what a recomputation found and changed. It may find the same each time: what the journal
/// has of the last hour is not recorded again.
void record_events(const Transaction& transaction, const std::vector<core::Event>& events);

/// Recomputes with an engine's list of containers. A container that was placed for this engine and
/// is not confirmed yet is kept if it is in the list; if it is not, and the listener placed it, it
/// is dropped.
/// @return ids of the live containers.
[[nodiscard]] Result<Ids> recompute_beside(Transaction& transaction, const EngineList& list);

/// Whether the state has lost records or rows, or all of it while cgroups still exist.
[[nodiscard]] bool is_state_lost(Transaction& transaction);
/// Makes the pods as recorded that an earlier transaction was changing and did not finish, and the
/// tiers above them; everything, at most once per transaction, if the state was lost while cgroups
/// still exist.
/// @param record_lost  a single record is: its pod's cgroup has a copy of it
[[nodiscard]] Status recover(Transaction& transaction, bool record_lost = false);

/// Lets one of podqos's own pods follow what runtimes have changed of its running containers
/// (core::follow_updates), and reports that and what it does not follow. Reads the limits of each
/// container.
void follow_runtime(Transaction& transaction, core::PodRecord& record, ReconcileReport& report);

/// As recompute(), with follow_runtime(), pod after pod and then what no pod owns, with the lock
/// released after each two milliseconds, so that starts come in between; then, step by step,
/// finishes what was not done at once, and lowers memory limits of tiers and roots that usage had
/// kept above the rule (Convergence): for 10 s, as long as that gets further.
/// @param patience  for so long it also waits for usage to fall, where a limit stays above the rule
[[nodiscard]] Result<ReconcileReport> reconcile(const core::Settings& settings, Log& log,
                                                Warnings warnings = Warnings::kLogged,
                                                std::chrono::seconds patience = {});

/// As reconcile(), without what comes step by step, in one transaction: for a preview.
[[nodiscard]] Result<ReconcileReport> reconcile_in_one(Transaction& transaction, Warnings warnings);

}  // namespace podqos::app
