#include "nri/single_instance.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/child_process.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::nri {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

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
  const auto start = steady_clock::now();
  const auto second = SingleInstance::acquire(directory_, 100ms);
  EXPECT_GE(steady_clock::now() - start, 100ms);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_EQ(second.error().message,
            "another podqos-nri (process " + std::to_string(::getpid()) + ") holds " + directory_ +
                "/nri.lock: stop it first, for two would make containers fail");
}

TEST_F(SingleInstanceTest, IsFreeAgainWhenTheFirstHasEnded) {
  {
    ASSERT_TRUE(SingleInstance::acquire(directory_));
  }
  EXPECT_TRUE(SingleInstance::acquire(directory_));
}

TEST_F(SingleInstanceTest, WaitsForOneThatIsAboutToEnd) {
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t first = start_child([&] {
    const auto only = SingleInstance::acquire(directory_);
    EXPECT_TRUE(only);
    EXPECT_EQ(::write(ready[1], "x", 1), 1);
    std::this_thread::sleep_for(200ms);
  });
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(SingleInstance::acquire(directory_));
  EXPECT_EQ(temporary_.read("state/nri.lock"), std::to_string(::getpid()) + "\n");
  static_cast<void>(wait_for(first));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(SingleInstanceTest, IsFreeAgainWhenTheFirstWasKilled) {
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t first = start_child([&] {
    const auto only = SingleInstance::acquire(directory_);
    EXPECT_TRUE(only);
    EXPECT_EQ(::write(ready[1], "x", 1), 1);
    ::pause();
  });
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THAT(SingleInstance::acquire(directory_, 0ms).error().message,
              ::testing::HasSubstr("(process " + std::to_string(first) + ")"));
  ::kill(first, SIGKILL);
  static_cast<void>(wait_for(first));
  EXPECT_TRUE(SingleInstance::acquire(directory_));
  EXPECT_EQ(temporary_.read("state/nri.lock"), std::to_string(::getpid()) + "\n");
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(SingleInstanceTest, DoesWithoutTheNameOfTheFirst) {
  const auto only = SingleInstance::acquire(directory_);
  ASSERT_TRUE(only);
  for (const char* text : {"", "garbage\n", "a line that is far too long to be a pid\n"}) {
    temporary_.write("state/nri.lock", text);
    EXPECT_EQ(SingleInstance::acquire(directory_, 0ms).error().message,
              "another podqos-nri holds " + directory_ +
                  "/nri.lock: stop it first, for two would make containers fail");
  }
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
