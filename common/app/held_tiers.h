#pragma once

#include <string>
#include <vector>

#include "common/app/transaction.h"
#include "common/base/units.h"

namespace podqos::app {

/// A tier or root whose memory limit cannot be lowered to its rule yet.
struct HeldTier {
  std::string path;  ///< its cgroup
  Bytes excess;      ///< how far the limit is above the rule
  bool root;
};

/// Roots and tiers whose memory limit is above the rule because their usage is.
[[nodiscard]] std::vector<HeldTier> held_tiers(Transaction& transaction);

/// Asks the kernel to reclaim `excess` bytes of each tier (memory.reclaim, cgroup v2, Linux 5.19).
/// Call it without the lock: it may take long.
/// @note Documentation/admin-guide/cgroup-v2.rst, memory.reclaim.
void reclaim(const std::vector<HeldTier>& held);

}  // namespace podqos::app
