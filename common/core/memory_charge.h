#pragma once

#include <cstdint>

#include "common/base/units.h"

namespace podqos::core {

/// What a memory cgroup and all below it are charged with, in bytes.
struct MemoryCharge {
  Bytes usage;    ///< memory.current (v1: memory.usage_in_bytes), up to date
  Bytes counted;  ///< all that memory.stat has of it, by kind
  Bytes shmem;    ///< tmpfs and shared memory, as memory.stat has them
};

enum class ShmemCharge : std::uint8_t {
  kNone,
  kUncertain,  ///< memory.stat is late: it tells within kStatDelay
  kSome,
};
/// Seconds after which memory.stat has all that had happened. The kernel adds up every two.
constexpr std::int64_t kStatDelay = 3;

/// Is tmpfs or shared memory charged? memory.stat can be two seconds behind, by more than it
/// admits: who reads it while another reader has the kernel add up may get the numbers from before.
/// Then it has more, or less, than there is by more than the kernel leaves uncounted in quiet
/// times.
/// @param processors that are online, at least 1
/// @note mm/memcontrol.c: MEMCG_CHARGE_BATCH, memcg_vmstats_needs_flush, FLUSH_TIME.
[[nodiscard]] ShmemCharge shmem_charge(const MemoryCharge& charge, std::int64_t processors,
                                       Bytes page_size);

}  // namespace podqos::core
