#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/core/record.h"
#include "common/core/settings.h"

// How the memory limit of a tier or root that usage keeps above its rule comes down to it, without
// a process killed and without anything that waits for it.
namespace podqos::core {

/// The memory limit that the rules ask for of a tier or root.
struct LimitRule {
  std::string cgroup;
  Bytes goal;  ///< at least tierMemoryFloor
  friend bool operator==(const LimitRule&, const LimitRule&) = default;
};

/// Those of all trees with pods, tiers before the root that contains them: what is reclaimed of a
/// tier is reclaimed of the root.
[[nodiscard]] std::vector<LimitRule> limit_rules(const NodeState& node, const Settings& settings,
                                                 const NodeCapacity& capacity);

/// What is observed of a tier or root before a step.
struct ConvergenceSnapshot {
  Bytes goal;                                 ///< see LimitRule
  std::optional<Bytes> limit = std::nullopt;  ///< as the kernel has it; nullopt: none
  Bytes usage;
  bool reclaims = false;  ///< the kernel has memory.reclaim (cgroup v2, Linux 5.19)
  /// Page cache that the kernel drops without writing it: what a limit of cgroup v1 may cut.
  Bytes clean_cache = {};
  std::int64_t waiting_percent = 0;  ///< of the last 10 s: some task waited for memory (PSI)
};

/// One step of a convergence.
struct ConvergenceStep {
  enum class Action : std::uint8_t {
    kNone,     ///< the limit is at its goal
    kReclaim,  ///< ask the kernel to reclaim `amount` (memory.reclaim), then look again
    kLower,    ///< lower the limit to `amount`, which on cgroup v1 may be below the usage
    kWait,     ///< a pause: the tier suffers, or nothing can be reclaimed
  };
  Action action = Action::kNone;
  Bytes amount = {};
};

/// Decides on a step. A limit that usage has freed is lowered at once, to kTierMemoryMargin above
/// the usage. Otherwise memory is reclaimed, kReclaimedPerStep at a time, until the goal is a
/// margin above the usage: by memory.reclaim, or on cgroup v1 by a limit that cuts kCutPerStep of
/// the clean page cache, which the kernel drops before it takes the limit. It refuses one that it
/// cannot make room for (EBUSY) and kills nothing. A margin of clean cache stays, so that the next
/// allocation at the new limit finds something to reclaim too. memory.force_empty would drop all
/// there is. Nothing is reclaimed while the tier waits for memory (kWaitingPercent).
/// @note Documentation/admin-guide/cgroup-v2.rst, memory.reclaim; mm/memcontrol-v1.c,
///       mem_cgroup_resize_max(), mem_cgroup_force_empty().
[[nodiscard]] ConvergenceStep decide_convergence(const ConvergenceSnapshot& snapshot);

/// More than a margin: that much a tier may take again at once, up to its new limit.
constexpr Bytes kReclaimedPerStep{64LL << 20U};
/// The lock is held meanwhile: some milliseconds, as clean pages are dropped at 4 GiB/s and more.
constexpr Bytes kCutPerStep{16LL << 20U};
/// A limit is lowered by less only to reach its goal.
constexpr Bytes kLeastStep{1LL << 20U};
constexpr std::int64_t kWaitingPercent = 10;  ///< of the time; above this the tier suffers

}  // namespace podqos::core
