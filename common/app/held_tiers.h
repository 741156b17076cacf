#pragma once

#include <string>
#include <vector>

#include "common/app/transaction.h"
#include "common/base/units.h"

namespace podqos::app {

struct HeldTier {
  std::string path;
  Bytes excess;
};

/// Tiers whose limit stands above what the rule wants, since their usage holds it up.
[[nodiscard]] std::vector<HeldTier> held_tiers(Transaction& transaction);

/// Asks the kernel to take back cold memory; without the lock, since it may take long.
void reclaim(const std::vector<HeldTier>& held);

}  // namespace podqos::app
