#include "common/sys/file_lock.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/child_process.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::sys {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;

class FileLockAcquire : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Directory::open(temporary_.path());
    ASSERT_TRUE(opened) << opened.error().message;
    directory_.emplace(std::move(*opened));
  }

  TemporaryDirectory temporary_;
  std::optional<Directory> directory_;
};

TEST_F(FileLockAcquire, MakesAFileThatStays) {
  {
    ASSERT_TRUE(FileLock::acquire(*directory_, "lock", milliseconds{0}));
  }
  struct stat made{};
  ASSERT_EQ(::stat(temporary_.path("lock").c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 07777U, 0600U);
  EXPECT_TRUE(FileLock::acquire(*directory_, "lock", milliseconds{0}));
}

TEST_F(FileLockAcquire, TimesOutWithThePathAndTheWait) {
  const auto held = FileLock::acquire(*directory_, "lock", milliseconds{0});
  ASSERT_TRUE(held);
  const auto start = steady_clock::now();
  const auto refused = FileLock::acquire(*directory_, "lock", milliseconds{30});
  EXPECT_GE(steady_clock::now() - start, milliseconds{30});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(refused.error().message,
            "lock " + temporary_.path() +
                "/lock: another process still holds it after 30 ms; should it hang, fuser -v " +
                temporary_.path() + "/lock tells which");
}

TEST_F(FileLockAcquire, IsFreeAgainWhenItsHolderWasKilled) {
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  const pid_t holder = start_child([&] {
    const auto held = FileLock::acquire(*directory_, "lock", milliseconds{0});
    EXPECT_TRUE(held);
    EXPECT_EQ(::write(ready[1], "x", 1), 1);
    ::pause();
  });
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_FALSE(FileLock::acquire(*directory_, "lock", milliseconds{1}));
  ::kill(holder, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(wait_for(holder)));
  EXPECT_TRUE(FileLock::acquire(*directory_, "lock", milliseconds{1000}));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(FileLockAcquire, RefusesASymlink) {
  temporary_.write("elsewhere", "");
  ASSERT_EQ(::symlink("elsewhere", temporary_.path("lock").c_str()), 0);
  const auto refused = FileLock::acquire(*directory_, "lock", milliseconds{0});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_THAT(refused.error().message, HasSubstr(temporary_.path("lock")));
}

TEST_F(FileLockAcquire, LetsOneInAtATime) {
  constexpr int kChildren = 32;
  constexpr int kRounds = 8;
  temporary_.write("count", "0");
  std::vector<pid_t> children;
  for (int i = 0; i < kChildren; ++i) {
    children.push_back(start_child([&] {
      for (int round = 0; round < kRounds; ++round) {
        const auto held = FileLock::acquire(*directory_, "lock", std::chrono::seconds{60});
        ASSERT_TRUE(held) << held.error().message;
        // Read, wait, write: any overlap loses a count.
        const int count = std::stoi(temporary_.read("count"));
        ::usleep(100);
        temporary_.write("count", std::to_string(count + 1));
      }
    }));
  }
  for (const pid_t child : children)
    EXPECT_EQ(wait_for(child), 0);
  EXPECT_EQ(temporary_.read("count"), "256");
}

}  // namespace
}  // namespace podqos::sys
