#pragma once

#include <cstdint>

#include "common/base/units.h"

namespace podqos::core {

/// Memory charged to a cgroup and its descendants, in bytes.
struct MemoryCharge {
  Bytes usage;    ///< memory.current (v1: memory.usage_in_bytes), always up to date
  Bytes counted;  ///< sum of the kinds of memory in memory.stat, which may be out of date
  Bytes shmem;    ///< tmpfs and shared memory in memory.stat
};

/// Whether tmpfs or shared memory is charged to a cgroup.
enum class ShmemCharge : std::uint8_t {
  kNone,
  kUncertain,  ///< memory.stat is out of date: read it again after kStatDelay
  kSome,
};
/// Seconds after which memory.stat has all changes. The kernel flushes it every two seconds.
constexpr std::int64_t kStatDelay = 3;

/// Decides whether tmpfs or shared memory is charged. memory.stat can be two seconds out of date: a
/// reader that comes while another one has the kernel flush it may get the old numbers. They are
/// old if `counted` differs from `usage` by more than the kernel leaves uncounted per processor.
/// @param processors  online processors, at least 1
/// @note mm/memcontrol.c: MEMCG_CHARGE_BATCH, memcg_vmstats_needs_flush, FLUSH_TIME.
[[nodiscard]] ShmemCharge shmem_charge(const MemoryCharge& charge, std::int64_t processors,
                                       Bytes page_size);

}  // namespace podqos::core
