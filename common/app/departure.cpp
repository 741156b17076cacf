#include "common/app/departure.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <thread>
#include <utility>

#include "common/app/oom_kills.h"
#include "common/app/reconciler.h"
#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/container.h"
#include "common/cgroup/node.h"
#include "common/cgroup/pod_cgroup.h"
#include "common/core/pods/counting.h"
#include "common/core/pods/pod_name.h"
#include "common/core/pods/pod_values.h"
#include "common/store/state_directory.h"
#include "common/store/store.h"

namespace podqos::app {

namespace {

constexpr std::size_t kDuePerTransaction = 4;
constexpr int kExpiredPerTransaction = 4;
constexpr std::size_t kCreatorsPerTransaction = 16;

core::DepartureSnapshot observe(Transaction& transaction, const core::PodRecord& record, bool due) {
  cgroup::Machine& machine = transaction.machine();
  core::DepartureSnapshot snapshot{
      .due = due,
      .charge = [&machine, &record] { return cgroup::tmpfs_memory(machine, record.cgroup); },
      .capacity = transaction.capacity(),
      .now = transaction.now()};
  if (record.released_at) return snapshot;
  snapshot.has_living = cgroup::has_living_container(machine, record);
  if (snapshot.has_living) {
    snapshot.unwritten = due && !record.kubelets_own && !cgroup::is_written(machine, record.cgroup);
  } else if (!record.kubelets_own) {
    // What cannot be found out does not tell that nothing is left: a later look may.
    snapshot.populated = cgroup::holds_container(machine, record.cgroup).value_or(true);
  }
  return snapshot;
}

/// Decides what becomes of a pod.
/// @param due  see DepartureSnapshot
core::Departure decide(Transaction& transaction, const core::PodRecord& record, bool due) {
  return core::decide_departure(record, observe(transaction, record, due), transaction.settings());
}

void tell(const Transaction& transaction, const core::Departure& departure) {
  if (departure.message.empty()) return;
  core::Event event = core::event_of(core::EventKind::kReleased, departure.record);
  event.text = departure.message;
  transaction.event(core::LogLevel::kInfo, std::move(event),
                    cat(core::name_of(departure.record), ": "));
}

/// Writes all values of a pod's cgroup again.
/// @return why the machine has refused them
Result<std::optional<Error>> rewrite(Transaction& transaction, core::PodRecord record) {
  cgroup::RemoveChildren left{.cgroup = record.cgroup};
  for (const core::ContainerRecord& container : record.containers)
    left.except.push_back(container.cgroup);
  transaction.remove_children(left);
  return transaction.write_or_postpone(record, nullptr);
}

/// Carries out what was decided.
/// @param before  the stored record
/// @return what the machine has refused: a later transaction retries it
Result<std::optional<Error>> carry_out(Transaction& transaction, const core::Departure& departure,
                                       const core::PodRecord& before) {
  const core::PodRecord& record = departure.record;
  switch (departure.outcome) {
    case core::PodOutcome::kStays:
    case core::PodOutcome::kPostponed: PODQOS_TRY(transaction.save(record, &before)); break;
    case core::PodOutcome::kRewritten:
      PODQOS_TRY(transaction.save(record, &before));
      return rewrite(transaction, record);
    case core::PodOutcome::kForgotten: PODQOS_TRY(transaction.erase(before)); break;
    case core::PodOutcome::kRemoved: return transaction.remove_pod(record, before);
  }
  return std::nullopt;
}

/// Logs what is left to later transactions.
Status log_refusal(Transaction& transaction, const std::string& uid,
                   const Result<std::optional<Error>>& done) {
  if (!done) return fail(done.error());
  if (*done) transaction.log().error(cat("pod ", uid, ": ", (*done)->message));
  return {};
}

/// Removes a container from its pod, and decides and carries out what becomes of the pod.
/// @return nullopt if the record does not contain it
Result<std::optional<core::Departure>> remove_container(Transaction& transaction,
                                                        const core::PodRecord& before,
                                                        const ContainerKey& key) {
  core::PodRecord record = before;
  const auto found = std::ranges::find(record.containers, key, &core::ContainerRecord::key);
  if (found == record.containers.end()) return std::nullopt;
  core::remove_container(record, static_cast<std::size_t>(found - record.containers.begin()));
  core::Departure departure = decide(transaction, record, false);
  PODQOS_TRY(log_refusal(transaction, record.pod.uid, carry_out(transaction, departure, before)));
  return departure;
}

}  // namespace

void remove_left(Transaction& transaction, const core::PodRecord& record,
                 std::span<const core::ContainerRecord> ended) {
  cgroup::RemoveChildren left{.cgroup = record.cgroup};
  for (const core::ContainerRecord& container : ended) {
    const bool is_own = !record.kubelets_own && parent_of(container.cgroup) == record.cgroup;
    if (is_own && transaction.machine().exists(container.cgroup))
      left.only.push_back(container.cgroup);
  }
  if (!left.only.empty()) transaction.remove_children(left);
}

Status drop_container(Transaction& transaction, const core::PodRecord& record,
                      const ContainerKey& key) {
  PODQOS_ASSIGN(auto departure, remove_container(transaction, record, key));
  if (departure) tell(transaction, *departure);
  if (!departure || departure->outcome != core::PodOutcome::kStays || record.kubelets_own)
    return {};
  // A container that never started takes its resources with it.
  const auto held = core::pod_values(record, transaction.settings());
  const auto wanted = core::pod_values(departure->record, transaction.settings());
  if (!held || !wanted || *wanted == *held) return {};
  return log_refusal(transaction, record.pod.uid,
                     transaction.write_or_postpone(departure->record, &record));
}

Result<std::optional<Error>> handle_due(Transaction& transaction, const core::PodRecord& record) {
  const core::Departure departure = decide(transaction, record, true);
  tell(transaction, departure);
  return carry_out(transaction, departure, record);
}

void withdraw(Transaction& transaction, const core::PodRecord& record,
              const core::ContainerRecord& container, const Error& reason) {
  core::PodRecord pod = record;
  // It leaves nothing in the pod's resources, also if it runs elsewhere.
  for (core::ContainerRecord& each : pod.containers) {
    if (each.key() == container.key()) each.state = core::ContainerState::kPending;
  }
  auto removed = remove_container(transaction, pod, container.key());
  if (!removed) return transaction.log_uncertain(pod.pod.uid, fail(removed.error()));
  // Some values of the pod may have been written.
  if (*removed && (*removed)->outcome == core::PodOutcome::kStays && !record.kubelets_own)
    transaction.log_uncertain(pod.pod.uid, transaction.postpone((*removed)->record, reason));
}

namespace {

/// Whether a pending container may still be created.
using IsCreated = std::function<bool(const core::ContainerRecord&)>;

/// Confirms a pending container that runs, drops one that was never created.
Status expire(Transaction& transaction, const std::string& uid,
              const core::ContainerRecord& container) {
  // The one before may have been the last that keeps the pod.
  PODQOS_ASSIGN(auto record, transaction.store().pod(uid));
  if (!record) return {};
  const auto entry =
      std::ranges::find(record->containers, container.key(), &core::ContainerRecord::key);
  if (entry == record->containers.end()) return {};
  const std::string name = cat("pod ", uid, ", container ", printable(container.id));
  const auto init = cgroup::find_init(transaction.machine(), container);
  if (!init) {
    transaction.log().warning(cat(name, ": counts as running: ", init.error().message));
    return {};
  }
  if (*init) {
    core::confirm_container(*entry, **init);
    return transaction.save(*record, &*record);
  }
  transaction.log().info(cat(name, ": removed from the pod, its creation was not finished"));
  PODQOS_TRY(drop_container(transaction, *record, container.key()));
  remove_left(transaction, *record, {&container, 1});
  return {};
}

/// The same for all of a pod that are not being created.
Status expire(Transaction& transaction, const std::string& uid, const IsCreated& is_created) {
  PODQOS_ASSIGN(const auto found, transaction.store().pod(uid));
  if (!found) return {};
  for (const core::ContainerRecord& container : found->containers) {
    if (container.state == core::ContainerState::kPending && !is_created(container))
      PODQOS_TRY(expire(transaction, uid, container));
  }
  return {};
}

bool takes_too_long(const core::PodRow& row, BootSeconds now) {
  return row.pending_since != core::kNever && core::takes_too_long(row.pending_since, now);
}

/// Pods with a pending container. Each event begins elsewhere, so that none is passed over for
/// ever.
std::vector<std::string> pending_pods(const Transaction& transaction, std::string_view handled) {
  std::vector<std::string> pending;
  for (const core::PodRow& row : transaction.node().rows)
    if (row.is_pending != 0) pending.emplace_back(row.uid.view());
  if (pending.empty()) return pending;
  const auto first = fnv1a(handled) + static_cast<std::uint64_t>(transaction.now().value());
  std::ranges::rotate(
      pending, std::next(pending.begin(), static_cast<std::ptrdiff_t>(first % pending.size())));
  return pending;
}

/// Whether a pod is due.
bool is_due(const Transaction& transaction, const core::PodRow& row) {
  return row.due != core::kNever && row.due <= transaction.now();
}

}  // namespace

void handle_what_is_due(Transaction& transaction) {
  std::vector<std::pair<BootSeconds, std::string>> due;
  for (const core::PodRow& row : transaction.node().rows)
    if (is_due(transaction, row)) due.emplace_back(row.due, row.uid.view());
  std::ranges::sort(due);
  if (due.size() > kDuePerTransaction) due.resize(kDuePerTransaction);
  for (const auto& [time, uid] : due)
    handle_if_due(transaction, uid);
}

bool handle_if_due(Transaction& transaction, const std::string& uid) {
  const core::PodRow* row = core::find_row(transaction.node(), uid);
  if (row == nullptr || !is_due(transaction, *row)) return false;
  Status done;
  if (auto record = transaction.store().pod(uid); !record)
    done = fail(std::move(record).error());
  else if (*record)
    done = log_refusal(transaction, uid, handle_due(transaction, **record));
  transaction.log_uncertain(uid, done, cat("pod ", uid, ": not completed, will be retried: "));
  // The others come first the next time.
  if (!done)
    transaction.store().postpone(uid, core::retry_at(transaction.now(), transaction.settings()));
  return true;
}

Status retry_unfinished(Transaction& transaction, std::vector<Refusal>& unfinished) {
  PODQOS_TRY(reconcile_interrupted(transaction));
  for (const Refusal& each : unfinished)
    handle_if_due(transaction, each.uid);
  PODQOS_TRY(transaction.finish());
  std::erase_if(unfinished, [&](const Refusal& each) {
    const auto is_same = [&](const auto& other) { return other.uid == each.uid; };
    const core::PodRow* row = core::find_row(transaction.node(), each.uid);
    return std::ranges::none_of(transaction.unfinished(), is_same) &&
           (row == nullptr || row->due == core::kNever);
  });
  return {};
}

Status follow_up(const core::Settings& settings, Log& log, std::vector<Refusal> unfinished,
                 const Timeouts& timeouts) {
  constexpr std::chrono::milliseconds kFirstPause{10};
  constexpr std::chrono::milliseconds kLongestPause{640};
  for (auto pause = kFirstPause; !unfinished.empty(); pause *= 2) {
    if (pause > kLongestPause) return fail(std::move(unfinished.front().error));
    std::this_thread::sleep_for(pause);
    PODQOS_ASSIGN(auto transaction, Transaction::open_existing(settings, log, timeouts));
    if (!transaction) return {};
    PODQOS_TRY(retry_unfinished(*transaction, unfinished));
  }
  return {};
}

void expire_pending(Transaction& transaction, const ContainerKey& handled,
                    const core::EngineList* list) {
  // One process may create many containers: look up each once.
  std::map<Pid, Result<std::optional<StartTime>>> creators;
  const auto lives = [&](const core::Process& process) {
    const auto [found, is_new] = creators.try_emplace(process.pid);
    if (is_new) found->second = transaction.machine().start_time_of(process.pid);
    // What cannot be found out does not tell that the creator is gone.
    return !found->second || *found->second == process.start_time;
  };
  const auto is_created = [&](const core::ContainerRecord& container) {
    const bool same_bundle =
        container.bundle == handled.bundle || container.bundle.empty() || handled.bundle.empty();
    if (container.id == handled.id && same_bundle) return true;
    const core::Process creator{.pid = container.pid, .start_time = container.start_time};
    if (list != nullptr && list->listener == creator) return list->ids.contains(container.id);
    return !core::takes_too_long(container.pending_since, transaction.now()) && lives(creator);
  };
  const auto may_expire = [&](const core::PodRow& row) {
    return (list != nullptr && list->listener == row.creator) ||
           takes_too_long(row, transaction.now()) || !lives(row.creator);
  };
  int expired = 0;
  for (const std::string& uid : pending_pods(transaction, handled.id)) {
    if (expired == kExpiredPerTransaction || creators.size() == kCreatorsPerTransaction) return;
    const core::PodRow* row = core::find_row(transaction.node(), uid);
    if (row == nullptr || row->is_pending == 0 || !may_expire(*row)) continue;
    ++expired;
    transaction.log_uncertain(
        uid, expire(transaction, uid, is_created),
        cat("pod ", uid, ": a container that was not created is not removed, will be retried: "));
  }
}

Result<EndResult> end_container(Transaction& transaction, const EndReport& report,
                                IfStillDying if_still_dying) {
  PODQOS_TRY(reconcile_interrupted(transaction));
  PODQOS_ASSIGN(auto found, store::find_container(transaction.store(), report.id, report.bundle));
  EndResult result;
  if (found)
    result.state =
        cgroup::observe_end_state(transaction.machine(), found->container(), report.caller);
  if (result.state == EndState::kDying && if_still_dying == IfStillDying::kDrop)
    result.state = EndState::kDone;
  if (!found || result.state != EndState::kDone) {
    PODQOS_TRY(transaction.finish_if_changed());
    return result;
  }
  report_oom_kills(transaction, found->record);
  PODQOS_TRY(drop_container(transaction, found->record, found->container().key()));
  expire_pending(transaction, {.id = report.id, .bundle = report.bundle});
  handle_what_is_due(transaction);
  PODQOS_TRY(transaction.finish());
  result.unfinished = transaction.unfinished();
  std::erase_if(result.unfinished, [&](const Refusal& each) {
    return !each.uid.empty() && each.uid != found->record.pod.uid;
  });
  return result;
}

Result<EndResult> end_container(const core::Settings& settings, Log& log, const EndReport& report,
                                IfStillDying if_still_dying, const Timeouts& timeouts) {
  // Most containers of a node may not be podqos's: return without the lock.
  if (!cgroup::owns_host() || !store::may_involve(settings.state_dir, report.id))
    return EndResult{};
  PODQOS_ASSIGN(auto transaction, Transaction::open_existing(settings, log, timeouts));
  if (!transaction) return EndResult{};
  return end_container(*transaction, report, if_still_dying);
}

}  // namespace podqos::app
