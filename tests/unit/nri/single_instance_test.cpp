#include "nri/single_instance.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/child_process.h"
#include "tests/unit/temporary_directory.h"
#include "tests/unit/test_clock.h"
#include "tests/unit/waits_for_lock.h"

namespace podqos::nri {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class SingleInstanceTest : public ::testing::Test {
 protected:
  [[nodiscard]] SingleInstance opened() const {
    auto only = SingleInstance::open(directory_);
    EXPECT_TRUE(only) << only.error().message;
    return std::move(*only);
  }

  TemporaryDirectory temporary_;
  std::string directory_ = temporary_.path("state");
};

TEST_F(SingleInstanceTest, MakesTheStateDirectory) {
  auto only = opened();
  ASSERT_TRUE(only.hold(0ms));
  struct stat made{};
  ASSERT_EQ(::stat(directory_.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 07777U, 0700U);
  EXPECT_EQ(temporary_.read("state/nri.lock"), std::to_string(::getpid()) + "\n");
}

TEST_F(SingleInstanceTest, RefusesTheSecondAndNamesTheFirst) {
  auto first = opened();
  ASSERT_TRUE(first.hold(0ms));
  auto second = opened();
  const LeapingClock clock;
  const auto start = clock.now();
  const auto held = second.hold(100ms, clock);
  EXPECT_EQ(clock.now() - start, 100ms);
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(held.error().message, "another podqos-nri (process " + std::to_string(::getpid()) +
                                      ") holds " + directory_ +
                                      "/nri.lock: only one may serve a runtime");
  for (const char* text : {"", "garbage\n", "a line that is far too long to be a pid\n"}) {
    temporary_.write("state/nri.lock", text);
    EXPECT_EQ(second.hold(0ms).error().message,
              "another podqos-nri holds " + directory_ + "/nri.lock: only one may serve a runtime");
  }
}

TEST_F(SingleInstanceTest, IsFreeAgainWhenTheFirstHasEnded) {
  {
    auto first = opened();
    ASSERT_TRUE(first.hold(0ms));
  }
  EXPECT_TRUE(opened().hold(0ms));
}

TEST_F(SingleInstanceTest, WaitsForOneThatIsAboutToEnd) {
  const Pipe ready;
  const pid_t second = ::getpid();
  const pid_t first = start_child([&] {
    auto only = opened();
    EXPECT_TRUE(only.hold(0ms));
    ready.tell();
    wait_until_it_waits(second);
  });
  ready.await();
  auto only = opened();
  EXPECT_TRUE(only.hold(1h));
  EXPECT_EQ(temporary_.read("state/nri.lock"), std::to_string(::getpid()) + "\n");
  static_cast<void>(wait_for(first));
}

TEST_F(SingleInstanceTest, IsFreeAgainWhenTheFirstWasKilled) {
  const Pipe ready;
  const pid_t first = start_child([&] {
    auto only = opened();
    EXPECT_TRUE(only.hold(0ms));
    ready.tell();
    ::pause();
  });
  ready.await();
  auto only = opened();
  EXPECT_THAT(only.hold(0ms).error().message, HasSubstr("(process " + std::to_string(first) + ")"));
  ::kill(first, SIGKILL);
  static_cast<void>(wait_for(first));
  EXPECT_TRUE(only.hold(0ms));
  EXPECT_EQ(temporary_.read("state/nri.lock"), std::to_string(::getpid()) + "\n");
}

TEST_F(SingleInstanceTest, RefusesADirectoryThatOthersCanWriteTo) {
  ASSERT_EQ(::mkdir(directory_.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(directory_.c_str(), 0777), 0);
  EXPECT_EQ(SingleInstance::open(directory_).error().code, ErrorCode::kConflict);
}

TEST_F(SingleInstanceTest, NamesTheDirectoryThatCannotBeMade) {
  EXPECT_EQ(
      SingleInstance::open(temporary_.path("none/state")).error().message,
      "make state directory " + temporary_.path("none/state") + ": No such file or directory");
}

}  // namespace
}  // namespace podqos::nri
