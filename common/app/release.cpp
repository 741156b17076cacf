#include "common/app/release.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/app/child_cgroups.h"
#include "common/app/monitor.h"
#include "common/base/text.h"
#include "common/core/counting.h"
#include "common/core/driver.h"
#include "common/core/memory_charge.h"
#include "common/core/pod_plan.h"
#include "common/core/policy.h"
#include "common/core/reservation.h"
#include "common/core/whole_pod.h"
#include "common/sys/process.h"

namespace podqos::app {

namespace {

constexpr int kReleasedPerTransaction = 4;
constexpr std::int64_t kMilliPerCpu = 1000;

/// Seconds since a time in a record; negative if it is in the future. Times above 10^9 were written
/// by an older podqos from the wall clock, the others count from boot.
std::int64_t seconds_since(UnixSeconds moment, const Transaction& transaction) {
  constexpr UnixSeconds kWallClock{1'000'000'000};
  const std::int64_t now = moment < kWallClock ? transaction.now().value() : std::time(nullptr);
  return now - moment.value();
}

/// Retains the pod for releaseDelay, at most for `most` seconds.
void retain(Transaction& transaction, const std::string& uid, std::int64_t most = kInt64Max) {
  // At least one second: a cgroup that cannot be removed must not be retried in a loop.
  const std::int64_t delay =
      std::max<std::int64_t>(transaction.settings().release_delay_seconds, 1);
  core::retain_pod(transaction.tiers(), uid,
                   UnixSeconds{transaction.now().value() + std::min(delay, most)});
}

/// Erases the pod's record and its index entries.
Status erase(Transaction& transaction, const core::PodRecord& record) {
  core::forget_retained(transaction.tiers(), record.pod.uid);
  if (auto done = transaction.store().erase_pod(record.pod.uid); !done) return done;
  for (const core::ContainerRecord& container : record.containers) {
    auto done = transaction.store().erase_container(
        {.id = container.id, .bundle = container.bundle, .uid = record.pod.uid});
    if (!done) return done;
  }
  return {};
}

/// Whether tmpfs memory is still charged to the pod's cgroup.
core::ShmemCharge tmpfs_memory(Transaction& transaction, const core::PodRecord& record) {
  using core::ShmemCharge;
  const auto charge = transaction.machine().memory_charge(record.cgroup);
  if (!charge) return ShmemCharge::kNone;
  const Bytes page_size{::sysconf(_SC_PAGESIZE)};
  // Count the processors only if the charge exceeds what one of them leaves uncounted, which is
  // rare.
  const ShmemCharge held = core::shmem_charge(*charge, 1, page_size);
  if (held != ShmemCharge::kUncertain) return held;
  const auto cpu = sys::online_cpu();
  return cpu ? core::shmem_charge(*charge, cpu->value() / kMilliPerCpu, page_size) : held;
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
    return transaction.store().put_pod(record);
  }
  if (!transaction.machine().exists(record.cgroup)) return erase(transaction, record);
  retain(transaction, record.pod.uid);
  return transaction.store().put_pod(record);
}

/// An adopted pod is not in podqos's tiers.
void log_release(Transaction& transaction, const core::PodRecord& record) {
  const std::string_view qos_class = core::format_qos_class(record.qos_class);
  if (record.adopted) {
    transaction.log().info(cat("pod ", record.pod.uid, " of a kubelet has ended: ", qos_class));
    return;
  }
  transaction.log().info(cat("pod ", record.pod.uid, " released: ", qos_class, ", cpu ",
                             record.granted.cpu.value(), "m, memory ",
                             record.granted.memory.value(), " returned to the tiers"));
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
  if (confirm_from_cgroup(transaction, *found)) return transaction.save(**record);
  transaction.log().info(cat("pod ", entry.uid, ", container ", printable(entry.id),
                             ": removed from the pod, its creation was not finished"));
  return drop_container(transaction, std::move(**record), entry.id, entry.bundle);
}

}  // namespace

bool lives(cgroup::Machine& machine, const core::ContainerRecord& container) {
  return machine.is_alive(container.pid, container.start_time);
}

bool confirm_from_cgroup(Transaction& transaction, core::ContainerRecord& container) {
  // A cgroup that is shared with other containers proves nothing.
  const std::string_view leaf =
      std::string_view{container.cgroup}.substr(container.cgroup.rfind('/') + 1);
  if (container.id.empty() || leaf.find(container.id) == std::string_view::npos) return false;
  const auto pids = transaction.machine().processes(container.cgroup);
  if (!pids) return false;
  // The oldest process is the init: all others descend from it or joined later.
  std::optional<StartTime> oldest;
  for (const Pid pid : *pids) {
    const auto start = transaction.machine().start_time_of(pid);
    if (!start || !*start || (oldest && **start >= *oldest)) continue;
    oldest = **start;
    container.pid = pid;
  }
  if (!oldest) return false;
  container.start_time = *oldest;
  container.state = core::ContainerState::kLive;
  return true;
}

bool has_living_container(cgroup::Machine& machine, const core::PodRecord& record) {
  return std::ranges::any_of(record.containers, [&](const core::ContainerRecord& container) {
    return lives(machine, container);
  });
}

void forget_ended(cgroup::Machine& machine, core::PodRecord& record,
                  const core::ContainerRecord& ended) {
  const bool replaced =
      std::ranges::any_of(record.containers, [&](const core::ContainerRecord& other) {
        return other.name == ended.name && (other.id != ended.id || other.bundle != ended.bundle) &&
               lives(machine, other);
      });
  if (!replaced) core::forget_container(record, ended.name);
}

namespace {

/// Grants the pod's requests again: an ended container no longer backs them.
void grant_again(Transaction& transaction, core::PodRecord& record) {
  core::remove_pod(transaction.tiers().sums, record);
  core::grant_requests(record, transaction.tiers().sums, transaction.settings(),
                       transaction.capacity());
  core::add_pod(transaction.tiers().sums, record);
}

}  // namespace

Status release_or_save(Transaction& transaction, core::PodRecord record) {
  // Set the mark before the first rmdir: a process that dies in between must leave it.
  if (auto done = transaction.store().begin(); !done) return done;
  if (has_living_container(transaction.machine(), record)) {
    if (core::backed_memory(record)) grant_again(transaction, record);
    return transaction.save(record);
  }
  if (!record.adopted) {
    const auto populated = holds_container(transaction, record.cgroup);
    if (populated && *populated) {
      // A process has outlived its container's init; the pod is released when it ends.
      retain(transaction, record.pod.uid);
      return transaction.save(record);
    }
  }
  if (!record.released_at) {
    core::remove_pod(transaction.tiers().sums, record);
    record.released_at = transaction.now();
    log_release(transaction, record);
  }
  return end_pod(transaction, std::move(record));
}

Status drop_container(Transaction& transaction, core::PodRecord record, std::string_view id,
                      std::string_view bundle) {
  const auto found = std::ranges::find_if(record.containers, [&](const core::ContainerRecord& c) {
    return c.id == id && c.bundle == bundle;
  });
  if (found == record.containers.end()) return {};
  const core::IndexEntry entry{.id = found->id, .bundle = found->bundle, .uid = record.pod.uid};
  core::forget_pending(transaction.tiers(), entry);
  if (auto done = transaction.store().begin(); !done) return done;
  if (found->moved) {
    if (auto done = transaction.run(core::plan_removal(found->cgroup)); !done) return done;
  }
  forget_ended(transaction.machine(), record, *found);
  record.containers.erase(found);
  if (auto done = release_or_save(transaction, std::move(record)); !done) return done;
  // Last: after a crash before this point the entry still leads to the record.
  return transaction.store().erase_container(entry);
}

Status end_pod(Transaction& transaction, core::PodRecord record) {
  if (auto done = transaction.store().begin(); !done) return done;
  if (record.adopted) return erase(transaction, record);
  const std::int64_t kept = seconds_since(*record.released_at, transaction);
  if (kept < transaction.settings().release_delay_seconds) {
    const core::ShmemCharge held = tmpfs_memory(transaction, record);
    if (held == core::ShmemCharge::kUncertain)
      retain(transaction, record.pod.uid, core::kStatDelay);
    if (held == core::ShmemCharge::kSome) retain(transaction, record.pod.uid);
    if (held != core::ShmemCharge::kNone) return transaction.save(record);
  }
  auto removed = transaction.remove_beside_systemd(record.cgroup, [&]() -> Result<bool> {
    auto done = remove_empty_children(transaction, record.cgroup);
    if (done) done = remove_or_retain(transaction, record);
    if (!done) return fail(std::move(done).error());
    return true;
  });
  if (removed && transaction.unfinished()) retain(transaction, record.pod.uid, 0);
  return removed;
}

void leave_unwritten(Transaction& transaction, const core::PodRecord& record, const Error& reason) {
  transaction.mark_unwritten(record.cgroup);
  if (reason.code == ErrorCode::kBusy) {
    retain(transaction, record.pod.uid, 0);
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

/// Writes all values of a live pod whose values were refused.
Status write_again(Transaction& transaction, core::PodRecord record) {
  if (auto done = transaction.store().begin(); !done) return done;
  // Left-over child cgroups have old limits, which the kernel checks the pod's new ones against.
  if (auto done = remove_empty_children(transaction, record.cgroup, record.containers); !done)
    return done;
  if (auto done = transaction.make_pod(record); !done) {
    leave_unwritten(transaction, record, done.error());
    transaction.log().error(cat("pod ", record.pod.uid, ": ", done.error().message));
    return {};
  }
  core::forget_retained(transaction.tiers(), record.pod.uid);
  return transaction.save(record);
}

/// Handles one retained pod that is due.
Status release_due(Transaction& transaction, const std::string& uid) {
  auto record = transaction.store().pod(uid);
  if (!record) return fail(std::move(record).error());
  if (!*record) {
    core::forget_retained(transaction.tiers(), uid);
    return {};
  }
  if ((*record)->released_at) return end_pod(transaction, std::move(**record));
  if (has_living_container(transaction.machine(), **record) &&
      transaction.is_unwritten((*record)->cgroup))
    return write_again(transaction, std::move(**record));
  return release_or_save(transaction, std::move(**record));
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

void expire_pending(Transaction& transaction, const ContainerKey& handled, const EngineList* list) {
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

}  // namespace podqos::app
