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

/// May tmpfs or shared memory be charged? memory.stat can be two seconds behind, by more than it
/// admits: who reads it while another reader has the kernel add up may get the numbers from before.
/// So more memory of no kind than the kernel leaves uncounted in quiet times means yes.
/// @param processors that are online, at least 1
/// @note mm/memcontrol.c: MEMCG_CHARGE_BATCH, memcg_vmstats_needs_flush, FLUSH_TIME.
[[nodiscard]] bool may_hold_shmem(const MemoryCharge& charge, std::int64_t processors,
                                  Bytes page_size);

}  // namespace podqos::core
