#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <span>

namespace podqos::sys {

/// The time, and the waits that it ends. What waits takes a clock as an argument, so that a test
/// decides how time passes.
class Clock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

  [[nodiscard]] virtual TimePoint now() const = 0;

  /// poll(2), until the deadline at the latest; nullopt: without one. Without descriptors a pause.
  /// @return as poll(2) does, with errno set.
  [[nodiscard]] virtual int poll(std::span<pollfd> polled,
                                 std::optional<TimePoint> deadline) const = 0;

  /// For a call that blocks for a given time instead: how long it may block before its caller asks
  /// again.
  /// @return 0: the deadline has passed.
  [[nodiscard]] virtual std::chrono::nanoseconds time_until(TimePoint deadline) const = 0;

 protected:
  Clock() = default;
  ~Clock() = default;
};

/// The machine's monotonic clock.
class SteadyClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override;
  [[nodiscard]] int poll(std::span<pollfd> polled,
                         std::optional<TimePoint> deadline) const override;
  [[nodiscard]] std::chrono::nanoseconds time_until(TimePoint deadline) const override;
};
inline constexpr SteadyClock kSteadyClock{};

}  // namespace podqos::sys
