#pragma once

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "common/base/units.h"

namespace podqos::sys {

/// The machine's monotonic clock (CLOCK_MONOTONIC), and the waits that depend on it. Code that
/// waits takes a clock as an argument, so that tests, which override it, control how time passes.
class Clock {
 public:
  /// Only meaningful within one boot of the machine.
  using TimePoint = std::chrono::steady_clock::time_point;

  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

  /// Current time; never goes backwards.
  [[nodiscard]] virtual TimePoint now() const { return std::chrono::steady_clock::now(); }

  /// poll(2) until the deadline at the latest, or without a limit if it is nullopt. Without
  /// descriptors it sleeps.
  /// @return as poll(2), with errno set.
  [[nodiscard]] virtual int poll(std::span<pollfd> polled, std::optional<TimePoint> deadline) const;

  /// How long a call that takes a duration may block before its caller checks the time again.
  /// @return 0 if the deadline has passed.
  [[nodiscard]] virtual std::chrono::nanoseconds time_until(TimePoint deadline) const {
    return std::max<std::chrono::nanoseconds>(deadline - now(), std::chrono::nanoseconds::zero());
  }

 protected:
  constexpr Clock() = default;
  ~Clock() = default;
};
/// The clock of production code.
struct SteadyClock final : Clock {};
inline constexpr SteadyClock kSteadyClock{};

/// CLOCK_BOOTTIME in seconds, so that a step of the wall clock neither shortens nor extends a
/// delay.
[[nodiscard]] std::int64_t seconds_since_boot();

/// The wall clock, CLOCK_REALTIME.
[[nodiscard]] UnixMillis wall_clock();

}  // namespace podqos::sys
