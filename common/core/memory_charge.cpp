#include "common/core/memory_charge.h"

namespace podqos::core {

bool may_hold_shmem(const MemoryCharge& charge, std::int64_t processors, Bytes page_size) {
  if (charge.shmem.value() > 0) return true;
  // Of each processor: pages that the statistics do not have yet, and pages charged in advance.
  constexpr std::int64_t kBatch = 64;
  const std::int64_t uncounted = 2 * kBatch * page_size.value() * processors;
  return charge.usage.value() - charge.counted.value() > uncounted;
}

}  // namespace podqos::core
