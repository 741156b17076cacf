#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/app/log.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/core/events/decide_reconciliation.h"
#include "common/core/events/event.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::app {

using core::EngineList;
using core::Ids;
using core::ReconcileReport;

/// Whether warnings of a reconciliation are logged, or only reported. What calls for an operator
/// would otherwise be logged once a minute by the timer.
enum class Warnings : std::uint8_t { kLogged, kReported };

/// Lets a pod follow what runtimes have changed of its containers: follow_runtime(), which reads
/// files of each container. nullptr where a start waits; the programs of events do not have it.
using FollowRuntime = void (*)(Transaction&, core::PodRecord&, ReconcileReport&);

/// How records and cgroups are made to match the running containers.
struct ReconcileParams {
  Warnings warnings = Warnings::kLogged;
  FollowRuntime follow = nullptr;
  /// All containers of an engine. One that was placed for this engine and is not confirmed yet is
  /// kept if it is in the list; if it is not, and the listener placed it, it is dropped. nullptr
  /// without an engine.
  const EngineList* list = nullptr;
};

/// Makes records and cgroups match the running containers: removes ended containers, restores lost
/// records from their copies in the cgroups, writes all values and removes what is left over.
/// @return the report, also if single pods failed: see `failed`
[[nodiscard]] Result<ReconcileReport> reconcile_node(Transaction& transaction,
                                                     ReconcileParams how = {});
/// The same for one pod.
[[nodiscard]] Result<ReconcileReport> reconcile_pod(Transaction& transaction,
                                                    const std::string& uid, ReconcileParams how);
/// The same for what no pod owns: trees, pod cgroups without a record, and the index.
[[nodiscard]] Result<ReconcileReport> reconcile_rest(Transaction& transaction, ReconcileParams how);

/// Makes these pods as recorded, and the tiers above them: releases those of which nothing lives.
[[nodiscard]] Status reconcile_pods(Transaction& transaction, const std::vector<std::string>& uids,
                                    ReconcileParams how = {});

/// Adds what has failed of a pod to the report.
void note_failure(ReconcileReport& report, const std::string& uid, const Error& error);

/// Records what a reconciliation found and changed. It may find the same each time: what the
/// journal has of the last hour is not recorded again.
void record_events(const Transaction& transaction, const std::vector<core::Event>& events);

/// Whether the state has lost records or rows, or all of it while cgroups still exist.
[[nodiscard]] bool is_state_lost(Transaction& transaction);
/// Makes the pods as recorded that an earlier transaction was changing and did not finish, and the
/// tiers above them; everything, at most once per transaction, if the state was lost while cgroups
/// still exist.
/// @param record_lost  a single record is: its pod's cgroup has a copy of it
[[nodiscard]] Status reconcile_interrupted(Transaction& transaction, bool record_lost = false,
                                           ReconcileParams how = {});

/// Lets one of podqos's own pods follow what runtimes have changed of its running containers
/// (core::follow_updates), and reports that and what it does not follow. Reads the limits of each
/// container.
void follow_runtime(Transaction& transaction, core::PodRecord& record, ReconcileReport& report);

/// Makes records and cgroups match the running containers as reconcile_node() does, but in pieces:
/// pod after pod, then what no pod owns. The lock is free between two pieces, so that starts come
/// in between.
class Reconciler {
 public:
  explicit Reconciler(Warnings warnings, FollowRuntime follow = nullptr)
      : how_{.warnings = warnings, .follow = follow} {}

  /// Does a piece, of two milliseconds or one pod, and ends the transaction. What fails for one pod
  /// is in the report. After an error the next call does the piece again.
  /// @param list  see ReconcileParams
  [[nodiscard]] Status step(Transaction& transaction, const EngineList* list = nullptr);
  /// Waits a millisecond between two pieces. Without it the next piece takes the free lock again
  /// before the kernel has woken the process that waits for it in flock(2).
  static void let_others_in();
  /// Does all of it in one transaction, which the caller ends: for a preview.
  [[nodiscard]] Status run(Transaction& transaction);
  /// Goes on with what no pod owns.
  void skip_pods() { uids_.clear(), next_ = Next::kRest; }
  [[nodiscard]] bool compares_pods() const { return next_ == Next::kPods; }
  [[nodiscard]] bool is_done() const { return next_ == Next::kNothing; }

  /// What it has found and changed.
  [[nodiscard]] ReconcileReport& report() { return report_; }
  /// What is left to do step by step: what was refused for the moment, and pods of which a part is
  /// removed (Transaction::partly_removed()).
  [[nodiscard]] std::vector<Refusal>& refused() { return refused_; }
  [[nodiscard]] const std::vector<std::string>& partly_removed() const { return partly_removed_; }

 private:
  enum class Next : std::uint8_t { kBegin, kPods, kRest, kNothing };
  [[nodiscard]] Status begin(Transaction& transaction);
  [[nodiscard]] Result<std::size_t> compare_pods(Transaction& transaction);
  [[nodiscard]] Status compare_rest(Transaction& transaction);
  void compare(Transaction& transaction, const std::string& uid);
  void add(ReconcileReport found);
  void report_end(Transaction& transaction);

  ReconcileParams how_;
  Next next_ = Next::kBegin;
  std::vector<std::string> uids_;  ///< of pods to compare, in reverse order
  ReconcileReport report_;
  std::vector<Refusal> refused_;
  std::vector<std::string> partly_removed_;
};

/// A Reconciler's pieces, with follow_runtime(); then, step by step, finishes what was not done at
/// once, and lowers memory limits of tiers and roots that usage had kept above the rule
/// (converge()): for 10 s, as long as that gets further.
/// @param patience  for so long it also waits for usage to fall, where a limit stays above the rule
[[nodiscard]] Result<ReconcileReport> reconcile(const core::Settings& settings, Log& log,
                                                Warnings warnings = Warnings::kLogged,
                                                std::chrono::seconds patience = {});

}  // namespace podqos::app
