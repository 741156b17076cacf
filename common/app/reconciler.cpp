#include "common/app/reconciler.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "common/app/convergence.h"
#include "common/app/departure.h"
#include "common/app/preview.h"
#include "common/app/resize_pod.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/cgroup/container.h"
#include "common/core/pods/apply_resize.h"
#include "common/core/pods/counted_requests.h"
#include "common/core/pods/counting.h"
#include "common/core/pods/pod_name.h"
#include "common/store/event_file.h"
#include "common/store/store.h"
#include "common/sys/clock.h"

namespace podqos::app {

namespace {

/// After a step that has reclaimed: the kernel tells of pressure every two seconds.
constexpr std::chrono::seconds kStepPause{1};
/// Between two looks at limits that cannot be lowered now.
constexpr std::chrono::seconds kLook{2};
/// How long a reconciliation lowers limits that it can lower.
constexpr std::chrono::seconds kLoweringTime{10};

/// Lowers memory limits as their usage falls, round by round.
/// @param patience  how long it waits for usage to fall
/// @return the last round's words of those that are above the rule still
Result<std::vector<std::string>> converge_for(const core::Settings& settings, Log& log,
                                              std::chrono::seconds patience) {
  const sys::Clock& clock = sys::kSteadyClock;
  const auto begun = clock.now();
  while (true) {
    PODQOS_ASSIGN(auto round, converge(settings, log));
    const bool lowered = round.lowered != 0;
    const auto time = std::max(patience, lowered ? kLoweringTime : std::chrono::seconds{0});
    if (round.above.empty() || clock.now() - begun >= time) return std::move(round.above);
    static_cast<void>(clock.poll({}, clock.now() + (lowered ? kStepPause : kLook)));
  }
}

constexpr int kMaxAttempts = 400;  ///< to remove 200,000 cgroups; each may take 50 ms of the lock

/// Goes on with the removal of an ended pod's cgroup in which containers have nested more than one
/// transaction removes (Transaction::partly_removed()), in transactions of its own, as long as it
/// gets further; the lock is free in between.
/// @return why it remains
Status remove_rest(const core::Settings& settings, Log& log, const std::string& uid) {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    PODQOS_ASSIGN(auto transaction, Transaction::open_existing(settings, log));
    if (!transaction) return {};
    PODQOS_TRY(reconcile_interrupted(*transaction));
    PODQOS_ASSIGN(const auto record, transaction->store().pod(uid));
    // Meanwhile another event may have removed it, or started a container in it.
    const bool due = record && record->released_at;
    PODQOS_ASSIGN(auto refused, due ? handle_due(*transaction, *record) : std::nullopt);
    PODQOS_TRY(transaction->finish());
    if (refused) return fail(*std::move(refused));
    if (std::ranges::count(transaction->partly_removed(), uid) == 0) return {};
  }
  return fail(ErrorCode::kBusy,
              "its containers have nested so many cgroups that its own is not removed yet: "
              "podqosctl reconcile goes on with it");
}

/// How long the lock is held as the values of pods are compared: one pod takes about a millisecond.
constexpr std::chrono::milliseconds kPiece{2};
/// Between two pieces.
constexpr std::chrono::milliseconds kTurn{1};

}  // namespace

Status Reconciler::step(Transaction& transaction, const EngineList* list) {
  how_.list = list;
  switch (next_) {
    case Next::kBegin:
      PODQOS_TRY(begin(transaction));
      PODQOS_TRY(transaction.finish_pods());
      next_ = uids_.empty() ? Next::kRest : Next::kPods;
      break;
    case Next::kPods: {
      PODQOS_ASSIGN(const auto compared, compare_pods(transaction));
      // Root and tiers come with what no pod owns.
      PODQOS_TRY(transaction.finish_pods());
      uids_.resize(uids_.size() - compared);
      if (uids_.empty()) next_ = Next::kRest;
      break;
    }
    case Next::kRest:
      PODQOS_TRY(compare_rest(transaction));
      PODQOS_TRY(transaction.finish());
      next_ = Next::kNothing;
      break;
    case Next::kNothing: return {};
  }
  report_end(transaction);
  return {};
}

void Reconciler::let_others_in() {
  static_cast<void>(sys::kSteadyClock.poll({}, sys::kSteadyClock.now() + kTurn));
}

Status Reconciler::run(Transaction& transaction) {
  PODQOS_TRY(begin(transaction));
  for (; !uids_.empty(); uids_.pop_back())
    compare(transaction, uids_.back());
  return compare_rest(transaction);
}

/// Finds the pods to compare. Where the state has lost something all are looked at first, and none
/// is left.
Status Reconciler::begin(Transaction& transaction) {
  if (is_state_lost(transaction)) {
    PODQOS_ASSIGN(report_, reconcile_node(transaction, how_));
    transaction.begin_node_reconciliation();
    return {};
  }
  PODQOS_TRY(reconcile_interrupted(transaction, false, how_));
  PODQOS_ASSIGN(uids_, transaction.store().pod_uids());
  // A release without rows may have been in use, and have left those of pods that it has released.
  std::ranges::move(core::uids_of(transaction.node()), std::back_inserter(uids_));
  std::ranges::sort(uids_, std::ranges::greater{});
  uids_.erase(std::ranges::unique(uids_).begin(), uids_.end());
  return {};
}

/// Compares the last of these pods, as many as a piece takes.
/// @return how many
Result<std::size_t> Reconciler::compare_pods(Transaction& transaction) {
  PODQOS_TRY(reconcile_interrupted(transaction, false, how_));
  const sys::Clock& clock = sys::kSteadyClock;
  const auto end = clock.now() + kPiece;
  std::size_t compared = 0;
  do {
    ++compared;
    compare(transaction, uids_[uids_.size() - compared]);
  } while (compared < uids_.size() && clock.now() < end);
  return compared;
}

void Reconciler::compare(Transaction& transaction, const std::string& uid) {
  auto found = reconcile_pod(transaction, uid, how_);
  if (found)
    add(std::move(*found));
  else
    note_failure(report_, uid, found.error());
}

/// Compares what no pod owns; everything, if a record was found to be lost on the way.
Status Reconciler::compare_rest(Transaction& transaction) {
  const bool is_lost = !transaction.node_is_reconciled() && is_state_lost(transaction);
  if (!is_lost) PODQOS_TRY(reconcile_interrupted(transaction, false, how_));
  const ReconcileParams how{.warnings = how_.warnings, .list = how_.list};
  PODQOS_ASSIGN(auto found,
                is_lost ? reconcile_node(transaction, how) : reconcile_rest(transaction, how));
  // They have been counted as they were compared.
  if (is_lost) found.pods = found.containers = 0;
  add(std::move(found));
  return {};
}

/// Adds to the report what was found of one pod, or of the rest.
void Reconciler::add(ReconcileReport found) {
  report_.pods += found.pods;
  report_.containers += found.containers;
  report_.released += found.released;
  report_.repaired += found.repaired;
  std::ranges::move(found.changes, std::back_inserter(report_.changes));
  std::ranges::move(found.failed, std::back_inserter(report_.failed));
  std::ranges::move(found.warnings, std::back_inserter(report_.warnings));
}

/// Reports what a transaction, which has ended, has done beside single pods.
void Reconciler::report_end(Transaction& transaction) {
  std::vector<core::Event> corrected;
  for (const std::string& line : transaction.release_written()) {
    report_.changes.push_back(describe_written(line));
    transaction.log().info(report_.changes.back());
    corrected.push_back({.kind = core::EventKind::kCorrected, .text = line});
  }
  record_events(transaction, corrected);
  for (const std::string& failure : transaction.failures()) {
    if (std::ranges::count(report_.failed, failure) == 0) report_.failed.push_back(failure);
  }
  for (const std::string& incident : transaction.store().incidents())
    report_.warnings.push_back(incident);
  std::ranges::copy(transaction.unfinished(), std::back_inserter(refused_));
  std::ranges::copy(transaction.partly_removed(), std::back_inserter(partly_removed_));
}

void record_events(const Transaction& transaction, const std::vector<core::Event>& events) {
  const sys::Directory* const state = transaction.state();
  if (events.empty() || state == nullptr || transaction.settings().events_size == Bytes{0}) return;
  // A journal that cannot be read cannot be written either, which is logged then.
  const auto journal = store::read_events(state->path());
  for (const core::Event& event : events) {
    if (!journal || !core::has_lately(journal->events, event, sys::wall_clock()))
      transaction.log().record(event, *state);
  }
}

void follow_runtime(Transaction& transaction, core::PodRecord& record,
                    core::ReconcileReport& report) {
  if (record.kubelets_own) return;
  const std::string pod = cat(core::name_of(record), ": ");
  const auto settled = settle_resize(transaction, record);
  if (settled) {
    record = *settled;
    report.changes.push_back(
        cat(pod, "has what its containers had got of a resize that was interrupted"));
  }
  // Its containers have the old values still.
  if (record.resizing) return;
  const auto held = cgroup::held_by_containers(transaction.machine(), record);
  const core::NodeRules node = transaction.rules();
  const std::vector<std::string> followed = core::follow_updates(record, held, node);
  for (const std::string& change : followed)
    report.changes.push_back(cat(pod, change));
  for (const std::string& warning : core::describe_unfollowed(record, held, node))
    report.warnings.push_back(cat(pod, warning));
  if (followed.empty() && !settled) return;
  core::count_requests(record, transaction.settings(), transaction.capacity());
  if (const auto words = core::describe_uncounted(record, transaction.settings()))
    report.warnings.push_back(cat(pod, *words));
}

Result<ReconcileReport> reconcile(const core::Settings& settings, Log& log, Warnings warnings,
                                  std::chrono::seconds patience) {
  Reconciler all{warnings, follow_runtime};
  ReconcileReport& report = all.report();
  const auto step = [&]() -> Status {
    PODQOS_ASSIGN(auto transaction, Transaction::open(settings, log));
    return all.step(transaction);
  };
  PODQOS_TRY(step());
  while (!all.is_done()) {
    Reconciler::let_others_in();
    const bool compares_pods = all.compares_pods();
    const auto done = step();
    if (done) continue;
    if (!compares_pods) return fail(done.error());
    report.failed.push_back(
        cat("the values of other pods were not compared: ", done.error().message));
    all.skip_pods();
  }
  const auto note = [&](const Status& done, const std::string& context) {
    if (done) return;
    report.failed.push_back(cat(context, done.error().message));
    log.error(report.failed.back());
  };
  note(follow_up(settings, log, std::move(all.refused())), "");
  for (const std::string& uid : all.partly_removed())
    note(remove_rest(settings, log, uid), cat("pod ", uid, ": "));
  auto above = converge_for(settings, log, patience);
  if (above)
    std::ranges::move(*above, std::back_inserter(report.warnings));
  else
    note(fail(above.error()), "memory limits: ");
  return std::move(report);
}

}  // namespace podqos::app
