#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "common/base/units.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// State of a container that its engine reports as ended.
enum class EndState : std::uint8_t {
  kDone,        ///< removed from its pod, or unknown to podqos
  kDying,       ///< its processes were killed but still exist
  kStillAlive,  ///< its process runs: a later container with this id, or not killed yet
};

/// Removes an ended container from its pod's record, and from the pod's resources
/// (forget_container()).
/// @param index  of the container in the record
void remove_container(PodRecord& record, std::size_t index);

/// Memory charged to a cgroup and its descendants, in bytes.
struct MemoryCharge {
  Bytes usage;    ///< memory.current (v1: memory.usage_in_bytes), always up to date
  Bytes counted;  ///< sum of the kinds of memory in memory.stat, which may be out of date
  Bytes shmem;    ///< tmpfs and shared memory in memory.stat
};

/// Whether tmpfs or shared memory is charged to a cgroup.
enum class ShmemCharge : std::uint8_t {
  kNone,
  kUncertain,  ///< memory.stat is out of date: read it again when the kernel has flushed it
  kSome,
};

/// Decides whether tmpfs or shared memory is charged. memory.stat can be two seconds out of date: a
/// reader that comes while another one has the kernel flush it may get the old numbers. They are
/// old if `counted` differs from `usage` by more than the kernel leaves uncounted per processor.
/// @param processors  online processors, at least 1
/// @note mm/memcontrol.c: MEMCG_CHARGE_BATCH, memcg_vmstats_needs_flush, FLUSH_TIME.
[[nodiscard]] ShmemCharge shmem_charge(const MemoryCharge& charge, std::int64_t processors,
                                       Bytes page_size);

/// What becomes of a pod of which a container has ended, or whose time has come.
enum class PodOutcome : std::uint8_t {
  kStays,      ///< a container lives: save the record
  kRewritten,  ///< a container lives: save the record, write all values of the cgroup again
  /// A process has outlived the containers, or tmpfs memory is charged to the cgroup: save the
  /// record, in which it is due.
  kPostponed,
  kForgotten,  ///< it has ended, and its cgroup is the kubelet's: erase the record
  kRemoved,    ///< it has ended: remove the cgroup, then erase the record
};

/// What is observed of a pod for decide_departure(). Of a released pod only `charge` counts.
struct DepartureSnapshot {
  bool due = false;         ///< its time has come; false if a container of it has ended
  bool has_living = false;  ///< a container of it is live or being created
  /// Processes other than the monitor's are in its cgroup; observed only for podqos's own pods
  /// without a living container.
  bool populated = false;
  /// Values of its cgroup were refused, and it is time to write them again; observed only for due
  /// pods with a living container.
  bool unwritten = false;
  /// Observes the tmpfs memory that is charged to its cgroup, which is expensive: asked for only
  /// until releaseDelay has passed since one of podqos's own pods was released.
  std::function<ShmemCharge()> charge = {};
  const NodeCapacity& capacity;
  BootSeconds now;  ///< since boot
};

/// The result of decide_departure(): the pod's record, and what else changes with it.
struct Departure {
  PodOutcome outcome = PodOutcome::kStays;
  PodRecord record;
  std::string message = {};  ///< for the log; empty if there is nothing to report
};

/// Decides what becomes of a pod. Its requests count while a container lives or a process is in its
/// cgroup, and leave the sums as soon as it is released. Those of a pod that lives on are counted
/// again: an ended container may have backed a part of them, or never have started.
[[nodiscard]] Departure decide_departure(PodRecord record, const DepartureSnapshot& snapshot,
                                         const Settings& settings);

/// When to come back to a pod whose cgroup could not be removed or written: after releaseDelay, at
/// least one second, so that it is not retried in a loop.
[[nodiscard]] BootSeconds retry_at(BootSeconds now, const Settings& settings);

}  // namespace podqos::core
