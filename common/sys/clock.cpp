#include "common/sys/clock.h"

#include <algorithm>
#include <ctime>
#include <limits>

namespace podqos::sys {

using std::chrono::milliseconds;

int Clock::poll(std::span<pollfd> polled, std::optional<TimePoint> deadline) const {
  int time = -1;
  if (deadline) {
    // Rounded up, so that the deadline has passed when poll(2) returns.
    const auto left = std::chrono::ceil<milliseconds>(time_until(*deadline)).count();
    time = static_cast<int>(std::min<milliseconds::rep>(left, std::numeric_limits<int>::max()));
  }
  return ::poll(polled.data(), polled.size(), time);
}

std::int64_t seconds_since_boot() {
  timespec time{};
  // Fails only for an unknown clock.
  static_cast<void>(::clock_gettime(CLOCK_BOOTTIME, &time));
  return time.tv_sec;
}

UnixMillis wall_clock() {
  using std::chrono::system_clock;
  const auto now = std::chrono::floor<milliseconds>(system_clock::now());
  return UnixMillis{now.time_since_epoch().count()};
}

}  // namespace podqos::sys
