#pragma once

#include <string>
#include <vector>

#include "common/app/log.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/settings.h"

namespace podqos::app {

/// A tier or root whose memory limit cannot be lowered to its rule yet.
struct HeldTier {
  std::string path;  ///< its cgroup
  Bytes excess;      ///< how far the limit is above the rule
  bool root;
};

/// Roots and tiers whose memory limit is above the rule because their usage is.
[[nodiscard]] std::vector<HeldTier> held_tiers(Transaction& transaction);

/// Lowers their limits as their usage falls, in at most 20 steps with the lock released in between.
/// @return those that are above the rule still
[[nodiscard]] Result<std::vector<HeldTier>> lower_step_by_step(const core::Settings& settings,
                                                               Log& log,
                                                               std::vector<HeldTier> held);

}  // namespace podqos::app
