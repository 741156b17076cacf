#include "common/app/departure.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/app/known_container.h"
#include "common/app/reconcile.h"
#include "common/base/text.h"
#include "common/cgroup/container.h"
#include "common/cgroup/pod_cgroup.h"
#include "common/cgroup/removal.h"
#include "common/core/counting.h"
#include "common/core/driver.h"
#include "common/core/pod_plan.h"
#include "common/store/unlocked_state.h"

namespace podqos::app {

namespace {

constexpr int kReleasedPerTransaction = 4;

/// Seconds since a time in a record; negative if it is in the future. Times above 10^9 were written
/// by an older podqos from the wall clock, the others count from boot.
std::int64_t seconds_since(UnixSeconds moment, const Transaction& transaction) {
  constexpr UnixSeconds kWallClock{1'000'000'000};
  const std::int64_t now = moment < kWallClock ? transaction.now().value() : std::time(nullptr);
  return now - moment.value();
}

/// Retains a pod whose cgroup could not be removed or written.
void retain(Transaction& transaction, const std::string& uid) {
  core::retain_pod(transaction.tiers(), uid,
                   core::retry_at(transaction.now(), transaction.settings()));
}

/// Retains a pod for the next transaction.
void retain_for_next(Transaction& transaction, const std::string& uid) {
  core::retain_pod(transaction.tiers(), uid, transaction.now());
}

/// Erases the pod's record and its index entries.
Status erase(Transaction& transaction, const core::PodRecord& record) {
  core::forget_retained(transaction.tiers(), record.pod.uid);
  return transaction.apply(core::plan_erasure(record));
}

/// Removes the pod's cgroup, and those of moved containers first.
Status remove_cgroups(Transaction& transaction, const core::PodRecord& record) {
  for (const core::ContainerRecord& container : record.containers) {
    if (!container.moved) continue;
    if (auto done = transaction.run(core::plan_removal(container.cgroup)); !done) return done;
  }
  return transaction.run(core::plan_removal(record.cgroup));
}

/// Removes the pod's cgroup and erases the record; retains both if the cgroup remains.
Status remove_or_retain(Transaction& transaction, const core::PodRecord& record) {
  if (auto done = remove_cgroups(transaction, record); !done) {
    // systemd does not reply: keep the record until its unit is gone.
    if (core::driver_of(record.cgroup) == core::Driver::kCgroupfs) return done;
    transaction.log().error(cat("pod ", record.pod.uid, ": ", done.error().message,
                                ": a later transaction or podqosctl reconcile will retry it"));
    retain(transaction, record.pod.uid);
    return transaction.save(record);
  }
  if (!transaction.machine().exists(record.cgroup)) return erase(transaction, record);
  retain(transaction, record.pod.uid);
  return transaction.save(record);
}

/// Confirms a pending container that runs, drops one that was never created.
Status expire(Transaction& transaction, const core::PendingEntry& entry) {
  core::forget_pending(transaction.tiers(),
                       {.id = entry.id, .bundle = entry.bundle, .uid = entry.uid});
  auto record = transaction.store().pod(entry.uid);
  if (!record) return fail(std::move(record).error());
  if (!*record) return {};
  auto& containers = (*record)->containers;
  const auto found = std::ranges::find_if(containers, [&](const core::ContainerRecord& container) {
    return container.id == entry.id && container.bundle == entry.bundle &&
           container.state == core::ContainerState::kPending;
  });
  if (found == containers.end()) return {};
  if (const auto init = cgroup::find_init(transaction.machine(), *found)) {
    core::confirm_container(*found, *init);
    return transaction.save(**record);
  }
  transaction.log().info(cat("pod ", entry.uid, ", container ", printable(entry.id),
                             ": removed from the pod, its creation was not finished"));
  return drop_container(transaction, std::move(**record), entry.id, entry.bundle);
}

/// Writes all values of a live pod whose values were refused.
Status write_again(Transaction& transaction, core::PodRecord record) {
  // Left-over child cgroups have old limits, which the kernel checks the pod's new ones against.
  auto cleared = transaction.note(
      cgroup::remove_children(transaction.machine(), record.cgroup, record.containers));
  if (!cleared) return cleared;
  if (auto done = transaction.make_pod(record); !done) {
    leave_unwritten(transaction, record, done.error());
    transaction.log().error(cat("pod ", record.pod.uid, ": ", done.error().message));
    return {};
  }
  core::forget_retained(transaction.tiers(), record.pod.uid);
  return transaction.save(record);
}

/// Why a pod is looked at.
enum class Cause : std::uint8_t {
  kEnded,  ///< a container of it has ended
  kDue,    ///< it was retained until now
};

core::DepartureSnapshot observe(Transaction& transaction, const core::PodRecord& record,
                                Cause cause) {
  core::DepartureSnapshot snapshot{
      .has_living = cgroup::has_living_container(transaction.machine(), record),
      .sums = transaction.tiers().sums,
      .capacity = transaction.capacity(),
      .now = transaction.now()};
  if (snapshot.has_living) {
    snapshot.unwritten = cause == Cause::kDue && transaction.is_unwritten(record.cgroup);
  } else if (!record.adopted) {
    snapshot.populated =
        cgroup::holds_container(transaction.machine(), record.cgroup).value_or(false);
  }
  return snapshot;
}

/// Decides what becomes of a pod, and does it.
Status depart(Transaction& transaction, core::PodRecord record, Cause cause) {
  // Set the mark before the first rmdir: a process that dies in between must leave it.
  if (auto done = transaction.store().begin(); !done) return done;
  const core::DepartureSnapshot snapshot = observe(transaction, record, cause);
  auto departure = core::decide_departure(std::move(record), snapshot, transaction.settings());
  transaction.tiers().sums = departure.sums;
  if (departure.until)
    core::retain_pod(transaction.tiers(), departure.record.pod.uid, *departure.until);
  if (!departure.message.empty()) transaction.log().info(departure.message);
  switch (departure.outcome) {
    case core::PodOutcome::kStays:
    case core::PodOutcome::kRetained: return transaction.save(departure.record);
    case core::PodOutcome::kRewritten: return write_again(transaction, std::move(departure.record));
    case core::PodOutcome::kReleased: break;
  }
  return end_pod(transaction, std::move(departure.record));
}

/// Removes a released pod's cgroup, erases its record, and retains both if that takes longer.
Status remove_released(Transaction& transaction, const core::PodRecord& record) {
  auto removed = transaction.remove_beside_systemd(record.cgroup, [&]() -> Result<bool> {
    auto done = transaction.note(cgroup::remove_children(transaction.machine(), record.cgroup));
    if (done) done = remove_or_retain(transaction, record);
    if (!done) return fail(std::move(done).error());
    return true;
  });
  if (removed && transaction.unfinished()) retain_for_next(transaction, record.pod.uid);
  return removed;
}

}  // namespace

Status drop_container(Transaction& transaction, core::PodRecord record, std::string_view id,
                      std::string_view bundle) {
  const auto found = std::ranges::find_if(record.containers, [&](const core::ContainerRecord& c) {
    return c.id == id && c.bundle == bundle;
  });
  if (found == record.containers.end()) return {};
  const core::IndexEntry entry = core::index_entry(record, *found);
  core::forget_pending(transaction.tiers(), entry);
  if (auto done = transaction.store().begin(); !done) return done;
  if (found->moved) {
    if (auto done = transaction.run(core::plan_removal(found->cgroup)); !done) return done;
  }
  const bool replaced = cgroup::is_replaced(transaction.machine(), record, *found);
  core::remove_container(record, static_cast<std::size_t>(found - record.containers.begin()),
                         replaced);
  if (auto done = depart(transaction, std::move(record), Cause::kEnded); !done) return done;
  // Last: after a crash before this point the entry still leads to the record.
  return transaction.apply({core::EraseIndexEntry{entry}});
}

Status end_pod(Transaction& transaction, core::PodRecord record) {
  if (auto done = transaction.store().begin(); !done) return done;
  const core::Settings& settings = transaction.settings();
  auto held = core::ShmemCharge::kNone;
  if (core::depends_on_charge(record, seconds_since(*record.released_at, transaction), settings))
    held = cgroup::tmpfs_memory(transaction.machine(), record.cgroup);
  switch (core::decide_removal(record, held)) {
    case core::Removal::kForget: return erase(transaction, record);
    case core::Removal::kRemove: return remove_released(transaction, record);
    case core::Removal::kRetain: break;
  }
  core::retain_pod(transaction.tiers(), record.pod.uid,
                   core::read_again_at(held, transaction.now(), settings));
  return transaction.save(record);
}

void leave_unwritten(Transaction& transaction, const core::PodRecord& record, const Error& reason) {
  transaction.mark_unwritten(record.cgroup);
  if (reason.code == ErrorCode::kBusy) {
    retain_for_next(transaction, record.pod.uid);
    transaction.leave_unfinished(reason);
  } else {
    retain(transaction, record.pod.uid);
  }
}

void withdraw(Transaction& transaction, const core::PodRecord& record,
              const core::ContainerRecord& container, const Error& reason) {
  auto dropped = drop_container(transaction, record, container.id, container.bundle);
  if (dropped) {
    const auto left = transaction.store().pod(record.pod.uid);
    // Some values may have been written.
    if (left && *left && !(*left)->released_at) leave_unwritten(transaction, **left, reason);
    dropped = transaction.finish();
  }
  if (!dropped) transaction.log().error(dropped.error().message);
}

namespace {

/// Handles one retained pod that is due.
Status release_due(Transaction& transaction, const std::string& uid) {
  auto record = transaction.store().pod(uid);
  if (!record) return fail(std::move(record).error());
  if (!*record) {
    core::forget_retained(transaction.tiers(), uid);
    return {};
  }
  if ((*record)->released_at) return end_pod(transaction, std::move(**record));
  return depart(transaction, std::move(**record), Cause::kDue);
}

}  // namespace

void release_retained(Transaction& transaction) {
  std::vector<std::string> due;
  for (const core::RetainedEntry& entry : transaction.tiers().retained) {
    if (seconds_since(entry.until, transaction) >= 0 && due.size() < kReleasedPerTransaction)
      due.push_back(entry.uid);
  }
  for (const std::string& uid : due) {
    if (auto done = release_due(transaction, uid); !done) {
      transaction.store().keep_mark();
      transaction.log().error(
          cat("pod ", uid, ": not completed, will be retried: ", done.error().message));
    }
  }
}

Status follow_up(const core::Settings& settings, Log& log, std::optional<Error> unfinished,
                 const Timeouts& timeouts) {
  constexpr std::chrono::milliseconds kFirstPause{10};
  constexpr std::chrono::milliseconds kLongestPause{640};
  for (auto pause = kFirstPause; unfinished; pause *= 2) {
    if (pause > kLongestPause) return fail(std::move(*unfinished));
    std::this_thread::sleep_for(pause);
    auto transaction = Transaction::open_existing(settings, log, timeouts);
    if (!transaction) return fail(std::move(transaction).error());
    if (!*transaction) return {};
    if (auto done = recover(**transaction); !done) return done;
    release_retained(**transaction);
    if (auto done = (*transaction)->finish(); !done) return done;
    unfinished = (*transaction)->unfinished();
  }
  return {};
}

void expire_pending(Transaction& transaction, const ContainerKey& handled,
                    const core::EngineList* list) {
  // One process may create many containers: look up each once.
  std::map<Pid, std::optional<StartTime>> creators;
  const auto is_created = [&](const core::PendingEntry& entry) {
    if (list != nullptr && list->is_listener(entry.pid, entry.start_time))
      return list->ids.contains(entry.id);
    const auto [creator, is_new] = creators.try_emplace(entry.pid);
    if (is_new)
      creator->second = transaction.machine().start_time_of(entry.pid).value_or(std::nullopt);
    return creator->second == entry.start_time;
  };
  const std::vector<core::PendingEntry> pending = transaction.tiers().pending;
  for (const core::PendingEntry& entry : pending) {
    const bool same_bundle =
        entry.bundle == handled.bundle || entry.bundle.empty() || handled.bundle.empty();
    if ((entry.id == handled.id && same_bundle) || is_created(entry)) continue;
    if (auto done = expire(transaction, entry); !done) {
      transaction.store().keep_mark();
      transaction.log().error(
          cat("pod ", entry.uid, ", container ", printable(entry.id),
              ": not removed from its pod, will be retried: ", done.error().message));
    }
  }
}

Result<Ended> end_container(Transaction& transaction, const EndedContainer& ended,
                            OnEnding on_ending) {
  if (auto done = recover(transaction); !done) return fail(std::move(done).error());
  auto found = find_container(transaction, ended.id, ended.bundle);
  if (!found) return fail(std::move(found).error());
  if (!*found) {
    if (auto done = transaction.finish_recovery(); !done) return fail(std::move(done).error());
    return Ended{};
  }
  const core::ContainerRecord container = (*found)->container();
  const Ending ending =
      core::decide_ending(cgroup::observe_ending(transaction.machine(), container, ended.caller));
  if (!core::is_removed(ending, on_ending)) {
    if (auto done = transaction.finish_recovery(); !done) return fail(std::move(done).error());
    return Ended{.ending = ending};
  }
  auto done =
      drop_container(transaction, std::move((*found)->record), container.id, container.bundle);
  if (done) {
    expire_pending(transaction, {.id = ended.id, .bundle = ended.bundle});
    release_retained(transaction);
    done = transaction.finish();
  }
  if (!done) return fail(std::move(done).error());
  return Ended{.unfinished = transaction.unfinished()};
}

Result<Ended> end_container(const core::Settings& settings, Log& log, const EndedContainer& ended,
                            OnEnding on_ending, const Timeouts& timeouts) {
  // Most containers of a node may not be podqos's: return without the lock.
  if (!store::may_involve(settings.state_dir, ended.id)) return Ended{};
  auto transaction = Transaction::open_existing(settings, log, timeouts);
  if (!transaction) return fail(std::move(transaction).error());
  if (!*transaction) return Ended{};
  return end_container(**transaction, ended, on_ending);
}

}  // namespace podqos::app
