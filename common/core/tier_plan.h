#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/base/units.h"
#include "common/core/policy.h"
#include "common/core/record.h"
#include "common/core/settings.h"
#include "common/core/tier.h"

namespace podqos::core {

/// What a transaction knows of root and tiers of a tree.
enum class Tree : std::uint8_t {
  kAsItWas,   ///< they exist, and hold the values of the last transaction
  kToMake,    ///< they may be missing, and any value may have been changed
  kJustMade,  ///< made by this transaction, without values
};

/// What is observed of the tiers before their values are written.
struct TierSnapshot {
  /// Memory usage of a tier; nullopt if it cannot be read. Asked for only if the tier has a limit.
  std::function<std::optional<Bytes>(const std::string& tier)> usage;
  /// Whether podqos has set a tier's I/O weight. Asked for only with kToMake.
  std::function<bool(const std::string& tier)> has_io_weight;
};

/// The values of a tree's tiers that follow from the sums, without regard to usage: CPU shares from
/// those of its own pods, beside which alone they count, memory limits from those of the node.
[[nodiscard]] TierValues wanted_tiers(const TierSums& tree, const TierSums& node,
                                      const Settings& settings, const NodeCapacity& capacity);

/// What is written of the tiers' values: a memory limit stays above usage (bounded_tier_limit()),
/// and what does not change later is written only if the tree is not as it was.
[[nodiscard]] TierValues decide_tier_write(const TreeRecord& record, TierValues wanted, Tree tree,
                                           const TierSnapshot& snapshot, const Settings& settings);

/// How far a tier's memory limit stays above the rule because its usage is; 0 if it does not.
[[nodiscard]] Bytes excess_of_limit(Bytes wanted, Bytes usage, const Settings& settings);

}  // namespace podqos::core
