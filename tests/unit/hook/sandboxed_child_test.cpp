#include "hook/sandboxed_child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/sys/fd.h"
#include "common/sys/sandbox.h"
#include "tests/unit/child_process.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::hook {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

/// More than any child here takes.
constexpr milliseconds kLong{60'000};

class RunInSandbox : public ::testing::Test {
 protected:
  RunInSandbox() {
    settings_.log_sink = "none";
    for (const char* name : {"place", "elsewhere"})
      std::filesystem::create_directory(directory_.path(name));
    place_ = sys::UniqueFd{::open(directory_.path("place").c_str(), O_PATH | O_CLOEXEC)};
    places_ = {place_.get()};
  }

  [[nodiscard]] Result<bool> run(const std::function<bool(const Status&)>& decide,
                                 milliseconds limit = kLong) {
    return run_in_sandbox({.settings = settings_, .log = log_, .places = places_},
                          app::Timeouts::Clock::now() + limit, decide);
  }
  [[nodiscard]] static bool can_make(const std::string& path) {
    const sys::UniqueFd file{::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
    return file.valid();
  }

  TemporaryDirectory directory_;
  core::Settings settings_;
  app::Log log_{"test", settings_};
  sys::UniqueFd place_;
  std::array<int, 1> places_{};
};

TEST_F(RunInSandbox, TellsWhatWasDecidedAndLeavesThisProcessAsItIs) {
  EXPECT_EQ(run([](const Status& entered) { return entered.has_value(); }), true);
  EXPECT_EQ(run([](const Status& entered) { return !entered.has_value(); }), false);
  EXPECT_TRUE(can_make(directory_.path("elsewhere/file")));
}

TEST_F(RunInSandbox, ReportsAChildThatIsKilled) {
  const auto ended = run([](const Status&) {
    std::abort();
    return true;
  });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(ended.error().message, HasSubstr("killed by signal 6"));
}

/// Whoever has taken a child over chooses its status: that must not run it without Landlock.
TEST_F(RunInSandbox, BelievesNoStatusOfAChildThatHasDecided) {
  const auto runs = directory_.path("place/runs");
  const auto ended = run([&](const Status&) {
    if (std::filesystem::exists(runs)) return true;
    static_cast<void>(can_make(runs));
    ::_exit(4);
  });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(ended.error().message, HasSubstr("ended with status 4"));
}

TEST_F(RunInSandbox, EndsTheChildWithThisProcess) {
  const std::string late = directory_.path("place/late");
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const sys::UniqueFd reading{ends[0]};
  sys::UniqueFd writing{ends[1]};
  const pid_t wrapper = ::fork();
  ASSERT_GE(wrapper, 0);
  if (wrapper == 0) {
    static_cast<void>(run([&](const Status&) {
      static_cast<void>(::write(writing.get(), "", 1));
      ::poll(nullptr, 0, static_cast<int>(kLong.count()));
      return can_make(late);
    }));
    ::_exit(0);
  }
  writing = sys::UniqueFd{};
  char begun = 'x';
  ASSERT_EQ(::read(reading.get(), &begun, 1), 1);
  ASSERT_EQ(::kill(wrapper, SIGKILL), 0);
  ASSERT_EQ(::waitpid(wrapper, nullptr, 0), wrapper);
  // The pipe has no writer any more once the child has ended.
  EXPECT_EQ(::read(reading.get(), &begun, 1), 0);
  EXPECT_FALSE(std::filesystem::exists(late));
}

TEST_F(RunInSandbox, KillsAChildThatIsLate) {
  const auto ended = run(
      [](const Status&) {
        for (;;)
          ::poll(nullptr, 0, 1000);
        return true;
      },
      milliseconds{100});
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(ended.error().message, HasSubstr("did not end in time and was killed"));
}

TEST_F(RunInSandbox, WritesToNothingButItsPlaces) {
  const int status = run_in_child([] {
    if (!sys::restrict_writes({}).value_or(true)) ::_exit(2);
  });
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this kernel has no Landlock";
  EXPECT_EQ(run([&](const Status&) { return can_make(directory_.path("place/file")); }), true);
  for (const std::string& path :
       {directory_.path("elsewhere/file"), std::string{"/etc/podqos-test-sandbox"},
        std::string{"/proc/sys/kernel/core_pattern"}}) {
    const auto made = run([&](const Status&) { return can_make(path); });
    EXPECT_EQ(made, false) << path;
  }
}

}  // namespace
}  // namespace podqos::hook
