#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "common/sys/clock.h"
#include "common/sys/fd.h"

namespace podqos::nri::test {

/// The clock of a service that runs in another thread than the test. Time stands still until the
/// test lets it pass, and it does so only once the service has done all that there is to do.
class ServiceClock final : public sys::Clock {
 public:
  // For the service.

  [[nodiscard]] TimePoint now() const override {
    const std::scoped_lock lock{mutex_};
    return now_;
  }
  int poll(std::span<pollfd> polled, std::optional<TimePoint> deadline) const override {
    std::vector<pollfd> all{polled.begin(), polled.end()};
    all.push_back({.fd = bell_.get(), .events = POLLIN, .revents = 0});
    while (true) {
      const std::uint64_t asked = take_asked();
      if (const int ready = ::poll(polled.data(), polled.size(), 0); ready != 0) {
        count_turn();
        return ready;
      }
      if (is_over(deadline, asked)) {
        count_turn();
        return 0;
      }
      if (::poll(all.data(), all.size(), -1) < 0) return -1;
    }
  }
  /// It has ended, and does nothing any more.
  void end() {
    const std::scoped_lock lock{mutex_};
    ended_ = true;
    changed_.notify_all();
  }

  // For the test.

  /// Until the service waits for what is neither there nor due.
  void settle() {
    std::unique_lock lock{mutex_};
    ++asked_;
    turns_ = 0;
    ring();
    changed_.wait(lock, [&] { return ended_ || answered_ == asked_ || turns_ > kEndless; });
    EXPECT_LE(turns_, kEndless) << "the service never waits";
  }
  void pass(std::chrono::nanoseconds time) {
    settle();
    {
      const std::scoped_lock lock{mutex_};
      now_ += time;
    }
    settle();
  }
  /// How long it waits unless something comes.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> left() {
    settle();
    const std::scoped_lock lock{mutex_};
    if (!deadline_) return std::nullopt;
    return *deadline_ - now_;
  }

 private:
  static constexpr int kEndless = 100'000;

  void ring() const {
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(bell_.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
  }
  void count_turn() const {
    const std::scoped_lock lock{mutex_};
    if (++turns_ > kEndless) changed_.notify_all();
  }
  /// What is answered by looking at the descriptors from now on.
  [[nodiscard]] std::uint64_t take_asked() const {
    std::uint64_t rings = 0;
    static_cast<void>(::read(bell_.get(), &rings, sizeof rings) < 0);
    const std::scoped_lock lock{mutex_};
    return asked_;
  }
  bool is_over(std::optional<TimePoint> deadline, std::uint64_t asked) const {
    const std::scoped_lock lock{mutex_};
    if (deadline && now_ >= *deadline) return true;
    deadline_ = deadline;
    answered_ = asked;
    changed_.notify_all();
    return false;
  }

  sys::UniqueFd bell_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  TimePoint now_{std::chrono::hours{1}};
  mutable std::optional<TimePoint> deadline_;
  std::uint64_t asked_ = 0;
  mutable std::uint64_t answered_ = 0;
  mutable int turns_ = 0;  ///< since it was asked
  bool ended_ = false;
};

}  // namespace podqos::nri::test
