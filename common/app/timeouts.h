#pragma once

#include <chrono>

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

}  // namespace podqos::app
