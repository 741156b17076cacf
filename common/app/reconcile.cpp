#include "common/app/reconcile.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "common/app/convergence.h"
#include "common/app/departure.h"
#include "common/app/preview.h"
#include "common/app/write_anew.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/core/pods/counted_requests.h"
#include "common/core/pods/pod_name.h"
#include "common/core/pods/resize.h"
#include "common/store/event_file.h"
#include "common/store/store.h"
#include "common/sys/clock.h"

namespace podqos::app {

namespace {

constexpr std::chrono::milliseconds kStepPause{20};
/// Between two looks at limits that cannot be lowered now.
constexpr std::chrono::seconds kLook{1};
/// How long a reconciliation lowers limits that it can lower.
constexpr std::chrono::seconds kLoweringTime{10};

/// Lowers memory limits as their usage falls, step by step.
/// @param patience  how long it waits for usage to fall
/// @return those that are above the rule still
Result<std::vector<core::HeldLimit>> converge(const core::Settings& settings, Log& log,
                                              std::vector<core::HeldLimit> held,
                                              std::chrono::seconds patience) {
  const sys::Clock& clock = sys::kSteadyClock;
  Convergence convergence{clock};
  convergence.hold(std::move(held));
  const auto begun = clock.now();
  while (!convergence.held().empty()) {
    PODQOS_ASSIGN(const bool lowered, convergence.step(settings, log));
    const auto time = std::max(patience, lowered ? kLoweringTime : std::chrono::seconds{0});
    if (clock.now() - begun >= time) break;
    static_cast<void>(clock.poll({}, clock.now() + (lowered ? kStepPause : kLook)));
  }
  return convergence.held();
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
    PODQOS_TRY(recover(*transaction));
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

/// What is left to do after a recomputation.
struct Unfinished {
  std::vector<Refusal> refused;
  std::vector<std::string> partly;  ///< Transaction::partly_removed()
};

/// Ends a transaction, and reports what it has done beside single pods.
Status finish(Transaction& transaction, Log& log, ReconcileReport& report, Unfinished& left) {
  PODQOS_TRY(transaction.finish_if_changed());
  std::vector<core::Event> corrected;
  for (const std::string& line : transaction.release_written()) {
    report.changes.push_back(describe_written(line));
    log.info(report.changes.back());
    corrected.push_back({.kind = core::EventKind::kCorrected, .text = line});
  }
  record_events(transaction, corrected);
  for (const std::string& failure : transaction.failures()) {
    if (std::ranges::count(report.failed, failure) == 0) report.failed.push_back(failure);
  }
  std::ranges::copy(transaction.unfinished(), std::back_inserter(left.refused));
  std::ranges::copy(transaction.partly_removed(), std::back_inserter(left.partly));
  return {};
}

/// Compares the values of one pod that a recomputation has left.
ReconcileReport compare(Transaction& transaction, const std::string& uid) {
  ReconcileReport report;
  auto record = transaction.store().pod(uid);
  if (!record) {
    note_failure(report, uid, record.error());
    return report;
  }
  if (!*record || (*record)->released_at) return report;
  const core::PodRecord before = **record;
  if (const auto done = write_anew(transaction, **record, &before, report); !done) {
    note_failure(report, uid, done.error());
    transaction.store().keep_mark();
  }
  return report;
}

/// Compares the values of the first pods of those that a recomputation has left.
Status compare_some(const core::Settings& settings, Log& log, ReconcileReport& report,
                    Unfinished& left) {
  PODQOS_ASSIGN(auto transaction, Transaction::open_existing(settings, log));
  if (!transaction) {
    report.unwritten.clear();
    return {};
  }
  PODQOS_TRY(recover(*transaction));
  const sys::Clock& clock = sys::kSteadyClock;
  const auto end = clock.now() + kPiece;
  do {
    const ReconcileReport found = compare(*transaction, report.unwritten.back());
    report.unwritten.pop_back();
    for (const std::string& line : found.changes)
      log.info(line);
    for (const std::string& line : found.failed)
      log.error(line);
    record_events(*transaction, found.events);
    std::ranges::copy(found.changes, std::back_inserter(report.changes));
    std::ranges::copy(found.failed, std::back_inserter(report.failed));
  } while (!report.unwritten.empty() && clock.now() < end);
  return finish(*transaction, log, report, left);
}

}  // namespace

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
  std::vector<core::HeldResources> held;
  held.reserve(record.containers.size());
  for (const core::ContainerRecord& container : record.containers) {
    const cgroup::CgroupView own{transaction.machine(), container.cgroup};
    held.push_back(core::tells_of_updates(record, container)
                       ? cgroup::held_by(transaction.machine(), container, own)
                       : core::HeldResources{});
  }
  const core::NodeRules node{.formula = transaction.formula(),
                             .page_size = Bytes{::sysconf(_SC_PAGESIZE)},
                             .settings = transaction.settings()};
  const std::string pod = cat(core::name_of(record), ": ");
  const std::vector<std::string> followed = core::follow_updates(record, held, node);
  for (const std::string& change : followed)
    report.changes.push_back(cat(pod, change));
  for (const std::string& warning : core::describe_unfollowed(record, held, node))
    report.warnings.push_back(cat(pod, warning));
  if (followed.empty()) return;
  core::count_requests(record, transaction.settings(), transaction.capacity());
  if (const auto words = core::describe_uncounted(record, transaction.settings()))
    report.warnings.push_back(cat(pod, *words));
}

Result<ReconcileReport> reconcile(const core::Settings& settings, Log& log, Warnings warnings,
                                  std::chrono::seconds patience) {
  ReconcileReport report;
  ReconcileReport pods;  // those whose values are compared later
  std::ptrdiff_t tiers = 0;
  std::vector<core::HeldLimit> held;
  Unfinished left;
  {
    PODQOS_ASSIGN(auto transaction, Transaction::open(settings, log));
    PODQOS_ASSIGN(report, recompute(transaction, warnings, follow_runtime, Values::kChanged));
    tiers = std::ssize(report.changes);
    PODQOS_TRY(finish(transaction, log, report, left));
    for (const std::string& incident : transaction.store().incidents())
      report.warnings.push_back(incident);
    held = transaction.held_limits();
    pods.unwritten = std::exchange(report.unwritten, {});
    std::ranges::reverse(pods.unwritten);
    pods.failed = std::exchange(report.failed, {});
  }
  while (!pods.unwritten.empty()) {
    if (const auto done = compare_some(settings, log, pods, left); !done) {
      pods.failed.push_back(
          cat("the values of other pods were not compared: ", done.error().message));
      break;
    }
  }
  // As the preview has it: pods, then tiers.
  report.changes.insert(report.changes.begin() + tiers, pods.changes.begin(), pods.changes.end());
  report.failed = std::move(pods.failed);
  const auto note = [&](const Status& done, const std::string& context) {
    if (done) return;
    report.failed.push_back(cat(context, done.error().message));
    log.error(report.failed.back());
  };
  note(follow_up(settings, log, std::move(left.refused)), "");
  for (const std::string& uid : left.partly)
    note(remove_rest(settings, log, uid), cat("pod ", uid, ": "));
  PODQOS_ASSIGN(auto still_held, converge(settings, log, std::move(held), patience));
  for (const core::HeldLimit& tier : still_held) {
    report.warnings.push_back(cat("cgroup ", tier.cgroup, ": memory limit is ",
                                  format_amount(tier.limit - tier.goal),
                                  " above the rule because its usage is"));
  }
  return report;
}

}  // namespace podqos::app
