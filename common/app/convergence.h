#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/app/log.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "common/core/events/decide_convergence.h"
#include "common/core/settings.h"
#include "common/sys/clock.h"

namespace podqos::app {

/// What a round has done to memory limits that usage keeps above their rule: numbers of limits.
struct ConvergenceRound {
  std::uint64_t reclaimed = 0;  ///< the kernel was asked to reclaim memory
  std::uint64_t lowerable = 0;  ///< found without the lock: lower() has something to do
  std::uint64_t lowered = 0;
  std::uint64_t pauses = 0;        ///< nothing: under pressure, or since nothing was to be had
  std::vector<std::string> above;  ///< one sentence for each that is above its rule still
};

/// One step of each memory limit of tiers and roots that the kernel has above the rule: at most
/// 100 ms of reclaiming each, without the lock, then, if one can be lowered, a transaction as long
/// as one of an event. Several programs may do it at once: each looks at what the kernel has then.
/// If one was lowered the next round may follow in a second.
[[nodiscard]] Result<ConvergenceRound> converge(const core::Settings& settings, Log& log,
                                                const Timeouts& timeouts = {});

// Its two halves.

/// Reclaims memory of those above their rule. Called without the lock.
/// @param deadline  the rest is left to the next round
[[nodiscard]] ConvergenceRound reclaim(
    cgroup::Machine& machine, const std::vector<core::LimitRule>& rules,
    const sys::Clock& clock = sys::kSteadyClock,
    sys::Clock::TimePoint deadline = sys::Clock::TimePoint::max());
/// Lowers what can be lowered; finishes the transaction.
/// @param round  of reclaim()
/// @return the same with what was done
[[nodiscard]] Result<ConvergenceRound> lower(Transaction& transaction, ConvergenceRound round);

}  // namespace podqos::app
