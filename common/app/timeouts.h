#pragma once

#include <algorithm>
#include <chrono>

#include "common/core/settings.h"
#include "common/sys/clock.h"

namespace podqos::app {

/// How long one call may wait, within the configured limits. A caller that its runtime waits for
/// sets a deadline for the whole call.
struct Timeouts {
  /// The clock of `deadline`; unaffected by steps of the wall clock.
  using Clock = std::chrono::steady_clock;
  Clock::time_point deadline = Clock::time_point::max();  ///< for all waiting of the call
  /// For the lock; the shorter of this and lockDeadline applies.
  std::chrono::milliseconds lock = std::chrono::milliseconds::max();
  std::chrono::milliseconds systemd{2000};       ///< for each reply of systemd
  const sys::Clock* clock = &sys::kSteadyClock;  ///< never null
};

/// How long one event of a container's start may wait in all, whatever it waits for: 5 s, or a
/// longer lockDeadline up to 25 s. Runtimes and engines give up later, and the hook ends itself
/// after 30 s.
[[nodiscard]] constexpr std::chrono::milliseconds start_time_limit(const core::Settings& settings) {
  return std::clamp(std::chrono::milliseconds{settings.lock_deadline_ms},
                    std::chrono::milliseconds{5'000}, std::chrono::milliseconds{25'000});
}

}  // namespace podqos::app
