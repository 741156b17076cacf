#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <span>

#include <gtest/gtest.h>

#include "common/sys/atomic_file.h"
#include "common/sys/directory.h"
#include "common/sys/fd.h"
#include "common/sys/sandbox.h"
#include "tests/unit/child_process.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::sys {
namespace {

/// @return false where the kernel has no Landlock
bool enter(std::span<const int> places) {
  const auto restricted = restrict_writes(places);
  EXPECT_TRUE(restricted) << restricted.error().message;
  return restricted.value_or(false);
}

class RestrictWrites : public ::testing::Test {
 protected:
  RestrictWrites() {
    std::filesystem::create_directory(directory_.path("mine"));
    std::filesystem::create_directory(directory_.path("mine/below"));
    std::filesystem::create_directory(directory_.path("theirs"));
    for (const char* name : {"mine/file", "mine/below/file", "theirs/file", "theirs/log"})
      directory_.write(name, "before");
  }
  void SetUp() override {
    const int status = run_in_child([] {
      if (!enter({})) ::_exit(2);
    });
    if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this kernel has no Landlock";
  }

  [[nodiscard]] UniqueFd open(const char* name, int flags) const {
    return UniqueFd{::open(directory_.path(name).c_str(), flags | O_CLOEXEC, 0600)};
  }
  /// errno of opening the file; 0 if it was opened.
  [[nodiscard]] int error_of(const char* name, int flags) const {
    errno = 0;
    return open(name, flags).valid() ? 0 : errno;
  }

  TemporaryDirectory directory_;
};

TEST_F(RestrictWrites, LeavesThePlacesWritable) {
  const UniqueFd place = open("mine", O_PATH);
  expect_in_child([&] {
    ASSERT_TRUE(enter(std::array{place.get()}));
    const auto mine = Directory::open(directory_.path("mine"));
    ASSERT_TRUE(mine);
    const auto replaced = replace_file(*mine, "file", "after");
    EXPECT_TRUE(replaced) << replaced.error().message;
    EXPECT_TRUE(mine->make_directory("new", 0700).value_or(false));
    EXPECT_TRUE(mine->remove_directory("new").value_or(false));
    EXPECT_EQ(error_of("mine/below/file", O_WRONLY | O_TRUNC), 0);
    EXPECT_EQ(::symlinkat("target", mine->fd(), "link"), 0);
  });
  EXPECT_EQ(directory_.read("mine/file"), "after");
}

TEST_F(RestrictWrites, RefusesAllOtherChanges) {
  const UniqueFd place = open("mine", O_PATH);
  expect_in_child([&] {
    ASSERT_TRUE(enter(std::array{place.get()}));
    for (const char* path : {"/etc/podqos-test-landlock", "/tmp/podqos-test-landlock"}) {
      EXPECT_LT(::open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600), 0) << path;
      EXPECT_EQ(errno, EACCES) << path;
    }
    EXPECT_LT(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC), 0);
    EXPECT_EQ(error_of("theirs/file", O_WRONLY), EACCES);
    EXPECT_EQ(error_of("theirs/new", O_WRONLY | O_CREAT), EACCES);
    const auto theirs = Directory::open(directory_.path("theirs"));
    ASSERT_TRUE(theirs);
    EXPECT_FALSE(replace_file(*theirs, "file", "after"));
    EXPECT_FALSE(theirs->make_directory("new", 0700));
    EXPECT_FALSE(theirs->remove_file("file"));
    EXPECT_NE(::rename(directory_.path("mine/file").c_str(), directory_.path("theirs/x").c_str()),
              0);
    EXPECT_NE(::rename(directory_.path("theirs/file").c_str(), directory_.path("mine/x").c_str()),
              0);
  });
  EXPECT_EQ(directory_.read("theirs/file"), "before");
}

TEST_F(RestrictWrites, TakesAFileForAPlace) {
  const UniqueFd place = open("theirs/log", O_PATH);
  expect_in_child([&] {
    ASSERT_TRUE(enter(std::array{place.get()}));
    EXPECT_EQ(error_of("theirs/log", O_WRONLY | O_APPEND | O_CREAT), 0);
    EXPECT_EQ(error_of("theirs/file", O_WRONLY), EACCES);
  });
}

TEST_F(RestrictWrites, LeavesReadingAndConnectionsAsTheyAre) {
  const UniqueFd server{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  directory_.path("theirs/socket").copy(address.sun_path, sizeof address.sun_path - 1);
  const auto* name = reinterpret_cast<const sockaddr*>(&address);
  ASSERT_EQ(::bind(server.get(), name, sizeof address), 0);
  expect_in_child([&] {
    ASSERT_TRUE(enter({}));
    EXPECT_EQ(error_of("theirs/file", O_RDONLY), 0);
    EXPECT_TRUE(Directory::open(directory_.path("theirs"))->entries());
    const UniqueFd client{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    EXPECT_EQ(::connect(client.get(), name, sizeof address), 0);
  });
}

TEST_F(RestrictWrites, FailsForAPlaceThatIsNotOpen) {
  expect_in_child([] { EXPECT_FALSE(restrict_writes(std::array{-1})); });
}

}  // namespace
}  // namespace podqos::sys
