#include "common/core/cgroups/memory_charge.h"

#include <cstdlib>

namespace podqos::core {

ShmemCharge shmem_charge(const MemoryCharge& charge, std::int64_t processors, Bytes page_size) {
  if (charge.shmem.value() > 0) return ShmemCharge::kSome;
  // Per processor: a batch of pages not in memory.stat yet, and a batch charged in advance.
  constexpr std::int64_t kBatch = 64;
  const std::int64_t uncounted = 2 * kBatch * page_size.value() * processors;
  const std::int64_t difference = charge.usage.value() - charge.counted.value();
  return std::abs(difference) > uncounted ? ShmemCharge::kUncertain : ShmemCharge::kNone;
}

}  // namespace podqos::core
