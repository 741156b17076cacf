#pragma once

#include <chrono>

#include "common/sys/clock.h"

namespace podqos::app {

/// How long one call may wait for others, within what the operator has set: who is waited for
/// himself, by a runtime, has a deadline for all of it.
struct Timeouts {
  using Clock = std::chrono::steady_clock;
  Clock::time_point deadline = Clock::time_point::max();  ///< of all that is waited for
  /// For the lock; lockDeadline where that is shorter.
  std::chrono::milliseconds lock = std::chrono::milliseconds::max();
  std::chrono::milliseconds systemd{2000};       ///< for each answer of systemd
  const sys::Clock* clock = &sys::kSteadyClock;  ///< never null
};

}  // namespace podqos::app
