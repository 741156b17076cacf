#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>

#include "common/sys/clock.h"

namespace podqos {

/// A clock that stands still but for what waits by it: what is not there at once never comes, and
/// the wait's time passes without being waited for.
class LeapingClock final : public sys::Clock {
 public:
  [[nodiscard]] TimePoint now() const override { return now_; }
  int poll(std::span<pollfd> polled, std::optional<TimePoint> deadline) const override {
    const int ready = ::poll(polled.data(), polled.size(), deadline ? 0 : -1);
    if (ready == 0) leap_to(*deadline);
    return ready;
  }
  [[nodiscard]] std::chrono::nanoseconds time_until(TimePoint deadline) const override {
    if (now_ >= deadline) return std::chrono::nanoseconds::zero();
    leap_to(deadline);
    return std::chrono::microseconds{1};
  }
  void pass(std::chrono::nanoseconds time) { now_ += time; }

 private:
  void leap_to(TimePoint deadline) const { now_ = std::max(now_, deadline); }

  mutable TimePoint now_{std::chrono::hours{1}};
};

/// A clock that a process shares with its children. Time passes when one of them says so, and in a
/// pause; a wait goes on until then, however long that takes.
class SharedClock final : public sys::Clock {
 public:
  SharedClock()
      : now_(static_cast<std::atomic<std::int64_t>*>(
            ::mmap(nullptr, sizeof(std::atomic<std::int64_t>), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    if (now_ == MAP_FAILED) std::abort();
    pass(std::chrono::hours{1});
  }
  ~SharedClock() { ::munmap(now_, sizeof *now_); }

  [[nodiscard]] TimePoint now() const override {
    return TimePoint{std::chrono::nanoseconds{now_->load()}};
  }
  int poll(std::span<pollfd> polled, std::optional<TimePoint> deadline) const override {
    if (polled.empty() && deadline) {
      pass(std::max<std::chrono::nanoseconds>(*deadline - now(), std::chrono::nanoseconds::zero()));
      return 0;
    }
    while (true) {
      const int ready = ::poll(polled.data(), polled.size(), deadline ? 1 : -1);
      if (ready != 0 || now() >= *deadline) return ready;
    }
  }
  /// Short, since it may pass meanwhile.
  [[nodiscard]] std::chrono::nanoseconds time_until(TimePoint deadline) const override {
    return now() >= deadline ? std::chrono::milliseconds{0} : std::chrono::milliseconds{1};
  }
  void pass(std::chrono::nanoseconds time) const { now_->fetch_add(time.count()); }

 private:
  std::atomic<std::int64_t>* now_;
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

}  // namespace podqos
