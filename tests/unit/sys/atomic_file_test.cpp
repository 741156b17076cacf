#include "common/sys/atomic_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/child_process.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::sys {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kTemporaryName = ".config.json.podqos-tmp";

FileOwner mine(mode_t mode) {
  return {.uid = ::geteuid(), .gid = ::getegid(), .mode = mode};
}

class ReplaceFile : public ::testing::Test {
 protected:
  void SetUp() override { open(temporary_.path()); }

  void open(const std::string& path) {
    auto opened = Directory::open(path);
    ASSERT_TRUE(opened) << opened.error().message;
    directory_.emplace(std::move(*opened));
  }
  [[nodiscard]] struct stat status_of(const char* name) const {
    struct stat found{};
    EXPECT_EQ(::lstat(temporary_.path(name).c_str(), &found), 0) << name;
    return found;
  }

  TemporaryDirectory temporary_;
  std::optional<Directory> directory_;
};

TEST_F(ReplaceFile, MakesAndReplaces) {
  ASSERT_TRUE(replace_file(*directory_, "config.json", "old", mine(0600)));
  EXPECT_EQ(temporary_.read("config.json"), "old");
  const auto before = status_of("config.json").st_ino;
  ASSERT_TRUE(replace_file(*directory_, "config.json", "new content", mine(0600)));
  EXPECT_EQ(temporary_.read("config.json"), "new content");
  EXPECT_NE(status_of("config.json").st_ino, before);
  EXPECT_FALSE(temporary_.has(kTemporaryName));
}

TEST_F(ReplaceFile, WritesAnEmptyAndALargeFile) {
  ASSERT_TRUE(replace_file(*directory_, "config.json", "", mine(0600)));
  EXPECT_EQ(status_of("config.json").st_size, 0);
  const std::string large(9'000'000, 'x');
  ASSERT_TRUE(replace_file(*directory_, "config.json", large, mine(0600)));
  EXPECT_EQ(temporary_.read("config.json"), large);
}

TEST_F(ReplaceFile, GivesTheModeWhateverTheUmask) {
  for (const mode_t mask : {0077U, 0022U, 0000U}) {
    const mode_t before = ::umask(mask);
    EXPECT_TRUE(replace_file(*directory_, "config.json", "x", mine(0644)));
    ::umask(before);
    EXPECT_EQ(status_of("config.json").st_mode & 07777U, 0644U) << "umask " << mask;
  }
}

TEST_F(ReplaceFile, KeepsAFileForTheCallerAloneUnlessToldOtherwise) {
  for (const mode_t mask : {0077U, 0000U}) {
    const mode_t before = ::umask(mask);
    EXPECT_TRUE(replace_file(*directory_, "config.json", "x"));
    ::umask(before);
    const auto made = status_of("config.json");
    EXPECT_EQ(made.st_uid, ::geteuid());
    EXPECT_EQ(made.st_mode & 07777U, 0600U) << "umask " << mask;
  }
}

TEST_F(ReplaceFile, GivesTheOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_TRUE(
      replace_file(*directory_, "config.json", "x", {.uid = 1234, .gid = 5678, .mode = 0640}));
  const auto made = status_of("config.json");
  EXPECT_EQ(made.st_uid, 1234U);
  EXPECT_EQ(made.st_gid, 5678U);
  EXPECT_EQ(made.st_mode & 07777U, 0640U);
}

TEST_F(ReplaceFile, MakesDurableFilesAndLinksAndRemovesThem) {
  ASSERT_TRUE(replace_durable_file(*directory_, "daemon.json", "{}", mine(0644)));
  EXPECT_EQ(temporary_.read("daemon.json"), "{}");
  EXPECT_EQ(status_of("daemon.json").st_mode & 07777U, 0644U);
  ASSERT_TRUE(make_durable_link(*directory_, "link", "daemon.json"));
  EXPECT_EQ(temporary_.read("link"), "{}");
  EXPECT_EQ(make_durable_link(*directory_, "link", "other").error().code,
            ErrorCode::kAlreadyExists);
  for (const char* name : {"link", "daemon.json", "not there"})
    EXPECT_TRUE(remove_durable_file(*directory_, name)) << name;
  EXPECT_FALSE(temporary_.has("link") || temporary_.has("daemon.json"));
}

TEST_F(ReplaceFile, ReplacesWhatAKilledProcessLeft) {
  temporary_.write(kTemporaryName, "half a fi");
  ASSERT_TRUE(replace_file(*directory_, "config.json", "whole", mine(0600)));
  EXPECT_EQ(temporary_.read("config.json"), "whole");
  EXPECT_FALSE(temporary_.has(kTemporaryName));
}

TEST_F(ReplaceFile, NeverWritesThroughALink) {
  temporary_.write("victim", "precious");
  const std::string victim = temporary_.path("victim");
  for (const auto make_link : {::symlink, ::link}) {
    for (const char* name : {kTemporaryName, "config.json"}) {
      ::unlink(temporary_.path("config.json").c_str());
      ASSERT_EQ(make_link(victim.c_str(), temporary_.path(name).c_str()), 0);
      ASSERT_TRUE(replace_file(*directory_, "config.json", "mine", mine(0600)));
      EXPECT_EQ(temporary_.read("victim"), "precious");
      EXPECT_TRUE(S_ISREG(status_of("config.json").st_mode));
    }
  }
}

TEST_F(ReplaceFile, LeavesTheTargetWhenTheTemporaryNameIsTaken) {
  temporary_.write("config.json", "old");
  ASSERT_EQ(::mkdir(temporary_.path(kTemporaryName).c_str(), 0700), 0);
  const auto refused = replace_file(*directory_, "config.json", "new", mine(0600));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              StartsWith("create " + temporary_.path(kTemporaryName) + ": "));
  EXPECT_EQ(temporary_.read("config.json"), "old");
}

TEST_F(ReplaceFile, RemovesTheTemporaryWhenTheRenameFails) {
  ASSERT_EQ(::mkdir(temporary_.path("config.json").c_str(), 0700), 0);
  const auto refused = replace_file(*directory_, "config.json", "new", mine(0600));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "replace " + temporary_.path("config.json") + ": rename: Is a directory");
  EXPECT_FALSE(temporary_.has(kTemporaryName));
}

TEST_F(ReplaceFile, RefusesWhatIsNoFileName) {
  for (const char* name : {"", ".", "..", "a/b", "../config.json"}) {
    const auto refused = replace_file(*directory_, name, "x", mine(0600));
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument) << name;
  }
}

TEST_F(ReplaceFile, LeavesTheTargetOnAFullFileSystem) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount a small file system";
  const int status = run_in_child([&] {
    ASSERT_TRUE(mount_private_tmpfs(temporary_.path().c_str(), "size=64k"));
    open(temporary_.path());
    ASSERT_TRUE(replace_file(*directory_, "config.json", "old", mine(0600)));
    const auto refused =
        replace_file(*directory_, "config.json", std::string(100'000, 'x'), mine(0600));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message,
              "replace " + temporary_.path("config.json") + ": write: No space left on device");
    EXPECT_EQ(temporary_.read("config.json"), "old");
    EXPECT_FALSE(temporary_.has(kTemporaryName));
  });
  EXPECT_EQ(status, 0);
}

TEST_F(ReplaceFile, ShowsReadersTheOldOrTheNewContent) {
  const std::string a(20'000, 'a');
  const std::string b(30'000, 'b');
  ASSERT_TRUE(replace_file(*directory_, "config.json", a, mine(0600)));
  const pid_t writer = start_child([&] {
    for (int i = 0; i < 300; ++i) {
      EXPECT_TRUE(replace_file(*directory_, "config.json", i % 2 == 0 ? b : a, mine(0600)));
    }
  });
  int status = 0;
  while (::waitpid(writer, &status, WNOHANG) == 0) {
    const std::string seen = temporary_.read("config.json");
    ASSERT_TRUE(seen == a || seen == b) << seen.size();
  }
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace podqos::sys
