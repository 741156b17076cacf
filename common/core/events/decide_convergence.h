#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/tier.h"
#include "common/core/settings.h"

// How the memory limit of a tier or root that usage keeps above its rule comes down to it, without
// a process killed and without anything that waits for it.
namespace podqos::core {

/// A tier or root whose memory limit was left above its rule.
struct HeldLimit {
  std::string cgroup;
  Bytes goal;   ///< the rule's value, at least tierMemoryFloor
  Bytes limit;  ///< as it was written
  friend bool operator==(const HeldLimit&, const HeldLimit&) = default;
};

/// Those of a tree's tiers and root whose limit is written above the rule, tiers before the root
/// that contains them: what is reclaimed of a tier is reclaimed of the root.
/// @param wanted  by the rules; limits that the transaction leaves alone are absent
[[nodiscard]] std::vector<HeldLimit> held_limits(const std::string& kubepods,
                                                 const TierValues& wanted,
                                                 const TierValues& written,
                                                 const Settings& settings);

/// How far a tier's memory limit is above its rule, or above the floor if that is higher; 0 if it
/// is not.
/// @param limit  as the kernel has it
/// @param floor  tierMemoryFloor
[[nodiscard]] Bytes gap_of_limit(Bytes limit, Bytes rule, Bytes floor);

/// What a step cuts of page cache at most. The lock is held meanwhile: some milliseconds, as clean
/// pages are dropped at 4 GiB/s and more.
constexpr Bytes kCutPerStep{16LL << 20U};

/// What is observed of a held limit's cgroup before a step.
struct ConvergenceSnapshot {
  Bytes goal;                                 ///< see HeldLimit
  std::optional<Bytes> limit = std::nullopt;  ///< as the kernel has it; nullopt: none
  Bytes usage;
  bool reclaims = false;  ///< the kernel has memory.reclaim (cgroup v2, Linux 5.19)
  /// Page cache that the kernel drops without writing it: what a limit of cgroup v1 may cut.
  Bytes clean_cache = {};
  Bytes cut = kCutPerStep;  ///< of cgroup v1, see next_cut()
  bool pauses = false;      ///< the pause after an earlier step is not over
  Bytes refaulted = {};     ///< since the last step: read again soon after it was reclaimed
  Micros waited = {};       ///< since the last step: some task waited for memory (PSI)
  Micros elapsed = {};      ///< since the last step
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
  friend bool operator==(const ConvergenceStep&, const ConvergenceStep&) = default;
};

/// Decides on a step. A limit that usage has freed is lowered at once, to kTierMemoryMargin above
/// the usage. Otherwise memory is reclaimed, kReclaimedPerStep at a time, until the goal is a
/// margin above the usage: by memory.reclaim, or on cgroup v1 by a limit that cuts a little of the
/// clean page cache, which the kernel drops before it takes the limit. It refuses one that it
/// cannot make room for (EBUSY) and kills nothing. A margin of clean cache stays, so that the next
/// allocation at the new limit finds something to reclaim too. memory.force_empty would drop all
/// there is. Reclaiming stops while the tier refaults (kRefaults) or waits for memory
/// (kWaitingPercent).
/// @note Documentation/admin-guide/cgroup-v2.rst, memory.reclaim; mm/memcontrol-v1.c,
///       mem_cgroup_resize_max(), mem_cgroup_force_empty().
[[nodiscard]] ConvergenceStep decide_convergence(const ConvergenceSnapshot& snapshot);

/// More than a margin: that much a tier may take again at once, up to its new limit.
constexpr Bytes kReclaimedPerStep{64LL << 20U};
/// A limit is lowered by less only to reach its goal.
constexpr Bytes kLeastStep{1LL << 20U};
constexpr Bytes kRefaults{4LL << 20U};        ///< between two steps; above this the tier suffers
constexpr std::int64_t kWaitingPercent = 10;  ///< of the time between two steps, likewise

/// The pause, in seconds, after a step that met with pressure or freed nothing: 1, twice the last
/// one, at most 8.
/// @param last  0: the last step needed none
[[nodiscard]] std::int64_t next_pause(std::int64_t last);

/// What the next step cuts of the page cache: after a refusal a quarter, at least kLeastStep, for
/// the kernel has to drop it faster than it is read back; after a step that was taken twice as
/// much, at most kCutPerStep.
[[nodiscard]] Bytes next_cut(Bytes last, bool is_refused);

}  // namespace podqos::core
