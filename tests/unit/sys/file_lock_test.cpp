#include "common/sys/file_lock.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/child_process.h"
#include "tests/unit/temporary_directory.h"
#include "tests/unit/test_clock.h"
#include "tests/unit/waits_for_lock.h"

namespace podqos::sys {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class FileLockAcquire : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Directory::open(temporary_.path());
    ASSERT_TRUE(opened) << opened.error().message;
    directory_.emplace(std::move(*opened));
  }

  [[nodiscard]] Result<FileLock> acquire(milliseconds timeout = {}) const {
    auto own = FileLock::acquire(*directory_, "lock", timeout);
    EXPECT_TRUE(own) << own.error().message;
    return own;
  }

  TemporaryDirectory temporary_;
  std::optional<Directory> directory_;
};

TEST_F(FileLockAcquire, MakesAFileThatStays) {
  static_cast<void>(acquire());
  struct stat made{};
  ASSERT_EQ(::stat(temporary_.path("lock").c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 07777U, 0600U);
  static_cast<void>(acquire());
}

TEST_F(FileLockAcquire, TimesOutWithThePathAndTheWait) {
  const auto held = acquire();
  const LeapingClock clock;
  const auto start = clock.now();
  const auto refused =
      FileLock::acquire(*directory_, "lock", milliseconds{30}, Clock::TimePoint::max(), clock);
  EXPECT_EQ(clock.now() - start, milliseconds{30});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(refused.error().message, "lock " + temporary_.path() +
                                         "/lock: another process still holds it after 30 ms; if it "
                                         "hangs, find it with `fuser -v " +
                                         temporary_.path() + "/lock`");
}

TEST_F(FileLockAcquire, KeepsToTheDeadlineWhoeverHoldsIt) {
  const auto held = acquire();
  const LeapingClock clock;
  const auto deadline = clock.now() + milliseconds{20};
  const auto refused =
      FileLock::acquire(*directory_, "lock", std::chrono::minutes{10}, deadline, clock);
  EXPECT_EQ(clock.now(), deadline);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTimeout);
}

/// Until it is killed; a child, since what this process holds its children would hold as well.
pid_t start_holder(const Directory& directory) {
  const Pipe ready;
  const pid_t holder = start_child([&] {
    const auto held = FileLock::acquire(directory, "lock", milliseconds{0});
    EXPECT_TRUE(held);
    ready.tell();
    ::pause();
  });
  ready.await();
  return holder;
}

void end_holder(pid_t holder) {
  ::kill(holder, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(wait_for(holder)));
}

TEST_F(FileLockAcquire, IsFreeAgainWhenItsHolderWasKilled) {
  const pid_t holder = start_holder(*directory_);
  EXPECT_FALSE(FileLock::acquire(*directory_, "lock", milliseconds{1}));
  end_holder(holder);
  static_cast<void>(acquire(milliseconds{1000}));
}

TEST_F(FileLockAcquire, ServesWaitersInTheirOrder) {
  constexpr int kWaiters = 16;
  temporary_.write("order", "");
  const pid_t holder = start_holder(*directory_);
  std::vector<pid_t> waiters;
  std::string expected;
  for (int i = 0; i < kWaiters; ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    expected += name;
    waiters.push_back(start_child([&] {
      const auto own = acquire(std::chrono::seconds{60});
      temporary_.write("order", temporary_.read("order") + name);
    }));
    wait_until_it_waits(waiters.back());
  }
  end_holder(holder);
  for (const pid_t waiter : waiters)
    EXPECT_EQ(wait_for(waiter), 0);
  EXPECT_EQ(temporary_.read("order"), expected);
}

/// Until the kernel's clock for files has moved on, so that who comes next is seen to be another.
void wait_for_file_time(const std::string& path) {
  struct stat before{};
  struct stat now{};
  ASSERT_EQ(::stat(path.c_str(), &before), 0);
  const UniqueFd other{::memfd_create("other", MFD_CLOEXEC)};
  do {
    ASSERT_EQ(::futimens(other.get(), nullptr), 0);
    ASSERT_EQ(::fstat(other.get(), &now), 0);
  } while (now.st_mtim.tv_sec == before.st_mtim.tv_sec &&
           now.st_mtim.tv_nsec == before.st_mtim.tv_nsec);
}

TEST_F(FileLockAcquire, WaitsLongerWhereTheLockMovesOn) {
  constexpr int kHolders = 5;
  const SharedClock clock;
  const pid_t first = start_holder(*directory_);
  std::vector<pid_t> holders;
  for (int i = 0; i < kHolders; ++i) {
    holders.push_back(start_child([&] {
      const auto own = acquire(std::chrono::seconds{60});
      wait_for_file_time(temporary_.path("lock"));
      clock.pass(milliseconds{300});
    }));
    wait_until_it_waits(holders.back());
  }
  holders.push_back(start_child([&] {
    const auto own =
        FileLock::acquire(*directory_, "lock", milliseconds{1000}, Clock::TimePoint::max(), clock);
    ASSERT_TRUE(own) << own.error().message;
  }));
  wait_until_it_waits(holders.back());
  end_holder(first);
  for (const pid_t holder : holders)
    EXPECT_EQ(wait_for(holder), 0);
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
        const auto held = acquire(std::chrono::seconds{60});
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
