#include "nri/single_instance.h"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/child_process.h"
#include "tests/unit/emulation.h"
#include "tests/unit/temporary_directory.h"
#include "tests/unit/test_clock.h"
#include "tests/unit/waits_for_lock.h"

namespace podqos::nri {
namespace {

using namespace std::chrono_literals;

class SingleInstanceTest : public ::testing::Test {
 protected:
  TemporaryDirectory temporary_;
  std::string directory_ = temporary_.path("state");
};

TEST_F(SingleInstanceTest, MakesTheStateDirectory) {
  const auto only = SingleInstance::acquire(directory_);
  ASSERT_TRUE(only) << only.error().message;
  struct stat made{};
  ASSERT_EQ(::stat(directory_.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 07777U, 0700U);
  EXPECT_EQ(temporary_.read("state/nri.lock"), std::to_string(::getpid()) + "\n");
}

TEST_F(SingleInstanceTest, RefusesTheSecondAndNamesTheFirst) {
  const auto only = SingleInstance::acquire(directory_);
  ASSERT_TRUE(only);
  const LeapingClock clock;
  const auto start = clock.now();
  const auto second = SingleInstance::acquire(directory_, 100ms, clock);
  EXPECT_EQ(clock.now() - start, 100ms);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_EQ(second.error().message,
            "another podqos-nri (process " + std::to_string(::getpid()) + ") holds " + directory_ +
                "/nri.lock: stop it first, as two plugins make container creation fail");
}

TEST_F(SingleInstanceTest, IsFreeAgainWhenTheFirstHasEnded) {
  {
    ASSERT_TRUE(SingleInstance::acquire(directory_));
  }
  EXPECT_TRUE(SingleInstance::acquire(directory_));
}

TEST_F(SingleInstanceTest, WaitsForOneThatIsAboutToEnd) {
  const Pipe ready;
  const pid_t second = ::getpid();
  const pid_t first = start_child([&] {
    const auto only = SingleInstance::acquire(directory_);
    EXPECT_TRUE(only);
    ready.tell();
    wait_until_it_waits(second);
  });
  ready.await();
  EXPECT_TRUE(SingleInstance::acquire(directory_, 1h));
  EXPECT_EQ(temporary_.read("state/nri.lock"), std::to_string(::getpid()) + "\n");
  static_cast<void>(wait_for(first));
}

TEST_F(SingleInstanceTest, IsFreeAgainWhenTheFirstWasKilled) {
  const Pipe ready;
  const pid_t first = start_child([&] {
    const auto only = SingleInstance::acquire(directory_);
    EXPECT_TRUE(only);
    ready.tell();
    ::pause();
  });
  ready.await();
  EXPECT_THAT(SingleInstance::acquire(directory_, 0ms).error().message,
              ::testing::HasSubstr("(process " + std::to_string(first) + ")"));
  ::kill(first, SIGKILL);
  static_cast<void>(wait_for(first));
  EXPECT_TRUE(SingleInstance::acquire(directory_));
  EXPECT_EQ(temporary_.read("state/nri.lock"), std::to_string(::getpid()) + "\n");
}

TEST_F(SingleInstanceTest, DoesWithoutTheNameOfTheFirst) {
  const auto only = SingleInstance::acquire(directory_);
  ASSERT_TRUE(only);
  for (const char* text : {"", "garbage\n", "a line that is far too long to be a pid\n"}) {
    temporary_.write("state/nri.lock", text);
    EXPECT_EQ(SingleInstance::acquire(directory_, 0ms).error().message,
              "another podqos-nri holds " + directory_ +
                  "/nri.lock: stop it first, as two plugins make container creation fail");
  }
}

TEST_F(SingleInstanceTest, ContendsWithoutTheLock) {
  const auto first = SingleInstance::acquire(directory_);
  ASSERT_TRUE(first);
  auto second = SingleInstance::contend(directory_);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_FALSE(second->is_held());
  const auto held = second->hold();
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, ErrorCode::kConflict);
  EXPECT_FALSE(second->is_held());
}

TEST_F(SingleInstanceTest, ContendsWithTheLockWhereItIsFree) {
  auto only = SingleInstance::contend(directory_);
  ASSERT_TRUE(only);
  EXPECT_TRUE(only->is_held());
  EXPECT_TRUE(only->take(0ms));
  EXPECT_EQ(temporary_.read("state/nri.lock"), std::to_string(::getpid()) + "\n");
  only->release();
  EXPECT_FALSE(only->is_held());
  EXPECT_TRUE(SingleInstance::acquire(directory_, 0ms));
}

TEST_F(SingleInstanceTest, TakesFromOneThatYields) {
  if (!has_own_name()) GTEST_SKIP() << "an emulator answers for /proc/self/stat";
  const Pipe ready;
  const pid_t first = start_child([&] {
    sigset_t yield{};
    ::sigemptyset(&yield);
    ::sigaddset(&yield, SIGUSR1);
    ::sigprocmask(SIG_BLOCK, &yield, nullptr);
    auto only = SingleInstance::acquire(directory_);
    EXPECT_TRUE(only);
    ready.tell();
    int signal = 0;
    ::sigwait(&yield, &signal);
    only->release();
    ::pause();
  });
  ready.await();
  auto second = SingleInstance::contend(directory_);
  ASSERT_TRUE(second);
  const auto taken = second->take(1h);
  EXPECT_TRUE(taken) << taken.error().message;
  EXPECT_TRUE(second->is_held());
  EXPECT_EQ(temporary_.read("state/nri.lock"), std::to_string(::getpid()) + "\n");
  ::kill(first, SIGKILL);
  static_cast<void>(wait_for(first));
}

TEST_F(SingleInstanceTest, TakesNothingFromOneThatDoesNotYield) {
  const Pipe ready;
  const pid_t first = start_child([&] {
    ::signal(SIGUSR1, SIG_IGN);
    const auto only = SingleInstance::acquire(directory_);
    EXPECT_TRUE(only);
    ready.tell();
    ::pause();
  });
  ready.await();
  auto second = SingleInstance::contend(directory_);
  ASSERT_TRUE(second);
  const auto taken = second->take(1ms);
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message,
              ::testing::HasSubstr("(process " + std::to_string(first) + ") holds"));
  ::kill(first, SIGKILL);
  static_cast<void>(wait_for(first));
}

TEST_F(SingleInstanceTest, SignalsNoOtherProgram) {
  const auto first = SingleInstance::acquire(directory_);
  ASSERT_TRUE(first);
  const Pipe never;
  const pid_t other = start_child([&] {
    ::prctl(PR_SET_NAME, "other");
    never.tell();
    ::pause();
  });
  never.await();
  temporary_.write("state/nri.lock", std::to_string(other) + "\n");
  auto second = SingleInstance::contend(directory_);
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->take(1h));  // without a wait
  EXPECT_EQ(::kill(other, SIGTERM), 0);
  const int status = wait_for(other);
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST_F(SingleInstanceTest, RefusesADirectoryThatOthersCanWriteTo) {
  ASSERT_EQ(::mkdir(directory_.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(directory_.c_str(), 0777), 0);
  EXPECT_EQ(SingleInstance::acquire(directory_).error().code, ErrorCode::kConflict);
}

TEST_F(SingleInstanceTest, NamesTheDirectoryThatCannotBeMade) {
  EXPECT_EQ(
      SingleInstance::acquire(temporary_.path("none/state")).error().message,
      "make state directory " + temporary_.path("none/state") + ": No such file or directory");
}

}  // namespace
}  // namespace podqos::nri
