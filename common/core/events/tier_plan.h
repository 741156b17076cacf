#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/units.h"
#include "common/core/kubernetes/tier.h"
#include "common/core/pods/grants.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// What a transaction knows of root and tiers of a tree.
enum class TreeState : std::uint8_t {
  kUnchanged,  ///< they exist, and hold the values of the last transaction
  kMissing,    ///< they may be missing, and any value may have been changed
  kFresh,      ///< made by this transaction, without values
};

/// What is observed of a tier before its values are written.
struct TierSnapshot {
  std::optional<Bytes> usage = std::nullopt;  ///< of memory; nullopt also if it has no limit
  bool has_io_weight = false;  ///< podqos has set its I/O weight; observed only with kMissing
};

/// What is observed of a tree's tiers.
struct TierSnapshots {
  TierSnapshot root;
  TierSnapshot burstable;
  TierSnapshot besteffort;
};

/// The values of a tree's tiers that follow from the sums, without regard to usage: CPU shares from
/// those of its own pods, beside which alone they count, memory limits from those of the node.
[[nodiscard]] TierValues wanted_tiers(const TierSums& tree, const TierSums& node,
                                      const Settings& settings, const NodeCapacity& capacity);

/// What is written of the tiers' values: a memory limit stays above usage (bounded_tier_limit()),
/// and what does not change later is written only if the tree is not as it was.
[[nodiscard]] TierValues decide_tier_write(TierValues wanted, TreeState tree,
                                           const TierSnapshots& snapshots,
                                           const Settings& settings);

/// How far a tier's memory limit stays above the rule because its usage is; 0 if it does not.
[[nodiscard]] Bytes excess_of_limit(Bytes wanted, Bytes usage, const Settings& settings);

}  // namespace podqos::core
