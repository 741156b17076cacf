// How long the plugin waits in all, for one request and in one round of housekeeping.

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/sys/clock.h"
#include "common/sys/fd.h"
#include "nri/plugin.h"
#include "tests/unit/nri/plugin_fixture.h"
#include "tests/unit/test_clock.h"

namespace podqos::nri {
namespace {

using namespace std::chrono_literals;
using test::kNoBudget;
using test::kSmall;
using test::PluginTest;

/// A clock by which, from hold() on, another process has the lock whenever podqos asks for it, and
/// releases it after a while. A wait that ends earlier is in vain.
class ContendedClock final : public sys::Clock {
 public:
  void hold(const std::string& lock, std::chrono::nanoseconds time) {
    file_ = sys::UniqueFd{::open(lock.c_str(), O_RDWR | O_CLOEXEC)};
    ASSERT_TRUE(file_.valid());
    time_ = time;
  }
  [[nodiscard]] TimePoint now() const override {
    // In vain while podqos has it.
    if (file_.valid()) static_cast<void>(::flock(file_.get(), LOCK_EX | LOCK_NB));
    return clock_.now();
  }
  [[nodiscard]] int poll(std::span<pollfd> polled,
                         std::optional<TimePoint> deadline) const override {
    return clock_.poll(polled, deadline);
  }
  [[nodiscard]] std::chrono::nanoseconds time_until(TimePoint deadline) const override {
    if (!file_.valid() || deadline - clock_.now() < time_) return clock_.time_until(deadline);
    clock_.pass(time_);
    static_cast<void>(::flock(file_.get(), LOCK_UN));
    return 1us;
  }

 private:
  mutable LeapingClock clock_;
  sys::UniqueFd file_;
  std::chrono::nanoseconds time_{0};
};

class DeadlineTest : public PluginTest {
 protected:
  void SetUp() override {
    PluginTest::SetUp();
    if (IsSkipped()) return;
    contended_.emplace(configuration(), metrics(), clock_);
    // Makes the state directory.
    ASSERT_TRUE(
        contended().run_pod_sandbox(event(pod("other", start_process(), kSmall)), kNoBudget));
  }
  [[nodiscard]] Plugin& contended() { return *contended_; }
  /// What podqos waits for the lock that another process holds for `time` each time.
  template <class Call>
  [[nodiscard]] std::chrono::nanoseconds waited(std::chrono::nanoseconds time, Call call) {
    clock_.hold(temporary().path("state/lock"), time);
    const auto begun = clock_.now();
    call();
    return clock_.now() - begun;
  }
  /// The same of a container's start, where the plugin has been told of its sandbox just before.
  [[nodiscard]] std::chrono::nanoseconds waited_at_start(std::chrono::nanoseconds time,
                                                         const api::PodSandbox& sandbox,
                                                         const api::Container& app) {
    EXPECT_TRUE(contended().synchronize(state_of({sandbox}), kNoBudget));
    return waited(
        time, [&] { EXPECT_TRUE(contended().start_container(event(sandbox, app), kNoBudget)); });
  }

 private:
  ContendedClock clock_;
  std::optional<Plugin> contended_;
};

constexpr auto kForEver = std::chrono::hours{24};

/// The runtime waits 2 s for each request, and half of that is for the work.
TEST_F(DeadlineTest, OfAStartIncludesTheSynchronizationOfItsPod) {
  const auto sandbox = pod("1", start_process(), kSmall);
  auto app = container(sandbox, "app", kSmall);
  app.mutable_linux()->set_cgroups_path(pod_path("burstable", "1") + "/app-of-1");
  run(app);
  EXPECT_EQ(waited_at_start(600ms, sandbox, app), 1s);
}

TEST_F(DeadlineTest, OfAStartHoldsWhereTheLockIsNeverFree) {
  const auto sandbox = pod("1", start_process(), kSmall);
  auto app = container(sandbox, "app", kSmall);
  app.set_pid(static_cast<std::uint32_t>(start_process().value()));
  EXPECT_EQ(waited_at_start(kForEver, sandbox, app), 1s);
}

TEST_F(DeadlineTest, OfARemovedSandboxIncludesItsContainers) {
  const auto sandbox = pod("1");
  for (const char* name : {"app", "log", "probe"}) {
    ASSERT_TRUE(
        contended().create_container(event(sandbox, container(sandbox, name, kSmall)), kNoBudget));
  }
  const auto remove = [&] {
    EXPECT_TRUE(contended().remove_pod_sandbox(event(sandbox), kNoBudget));
  };
  EXPECT_EQ(waited(400ms, remove), 1s);
}

class HousekeepingDeadlineTest : public DeadlineTest {
 protected:
  void SetUp() override {
    DeadlineTest::SetUp();
    if (IsSkipped()) return;
    housekeep(contended());
    for (int i = 0; i < 16; ++i) {
      const auto sandbox = pod(std::to_string(i), start_process(), kSmall);
      ASSERT_TRUE(contended().run_pod_sandbox(event(sandbox), kNoBudget));
    }
    end_processes();
  }
  [[nodiscard]] auto round() {
    return [this] { EXPECT_FALSE(contended().housekeep()); };
  }
};

/// A request that arrives meanwhile has a second of its own, of the two that the runtime grants.
TEST_F(HousekeepingDeadlineTest, HoldsForAllThatWaitsALittle) {
  EXPECT_LE(waited(90ms, round()), 500ms);
  EXPECT_FALSE(is_known("0"));
  EXPECT_LE(waited(90ms, round()), 500ms) << "what the first round has left";
}

TEST_F(HousekeepingDeadlineTest, EndsAtTheFirstWaitInVain) {
  EXPECT_EQ(waited(kForEver, round()), 100ms);
  EXPECT_EQ(waited(kForEver, round()), 100ms) << "what is deferred then";
}

TEST_F(HousekeepingDeadlineTest, LeavesNothingUndone) {
  constexpr int kRounds = 16;
  static_cast<void>(waited(90ms, [&] {
    for (int i = 0; i < kRounds; ++i)
      round()();
  }));
  for (int i = 0; i < 16; ++i)
    EXPECT_FALSE(is_known(std::to_string(i))) << i;
}

}  // namespace
}  // namespace podqos::nri
