#include "common/sys/atomic_file.h"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
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
using ::testing::UnorderedElementsAre;

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
  [[nodiscard]] Status replace(std::string_view content) const {
    return replace_file(*directory_, "config.json", content, mine(0600));
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
  // What a killed process left.
  temporary_.write(kTemporaryName, "half a fi");
  ASSERT_TRUE(replace("old"));
  EXPECT_EQ(temporary_.read("config.json"), "old");
  // An empty and a large one, too.
  for (const std::string& content : {std::string{}, std::string(9'000'000, 'x')}) {
    const auto before = status_of("config.json").st_ino;
    ASSERT_TRUE(replace(content));
    EXPECT_EQ(temporary_.read("config.json"), content);
    EXPECT_NE(status_of("config.json").st_ino, before);
    EXPECT_FALSE(temporary_.has(kTemporaryName));
  }
}

TEST_F(ReplaceFile, GivesOwnerAndModeWhateverTheUmask) {
  const auto expect = [this](const std::optional<FileOwner>& given, const FileOwner& want) {
    for (const mode_t mask : {0077U, 0022U, 0000U}) {
      const mode_t before = ::umask(mask);
      EXPECT_TRUE(replace_file(*directory_, "config.json", "x", given));
      ::umask(before);
      const auto made = status_of("config.json");
      EXPECT_EQ((FileOwner{made.st_uid, made.st_gid, made.st_mode & 07777U}), want) << mask;
    }
  };
  expect(mine(0644), mine(0644));
  expect(std::nullopt, mine(0600));
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const FileOwner other{.uid = 1234, .gid = 5678, .mode = 0640};
  expect(other, other);
}

TEST_F(ReplaceFile, MakesDurableFilesAndLinksAndRemovesThem) {
  ASSERT_TRUE(replace_file(*directory_, "daemon.json", "{}", mine(0644), Durability::kDurable));
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

TEST_F(ReplaceFile, NeverWritesThroughALink) {
  temporary_.write("victim", "precious");
  const std::string victim = temporary_.path("victim");
  for (const auto make_link : {::symlink, ::link}) {
    for (const char* name : {kTemporaryName, "config.json"}) {
      ::unlink(temporary_.path("config.json").c_str());
      ASSERT_EQ(make_link(victim.c_str(), temporary_.path(name).c_str()), 0);
      ASSERT_TRUE(replace("mine"));
      EXPECT_EQ(temporary_.read("victim"), "precious");
      EXPECT_TRUE(S_ISREG(status_of("config.json").st_mode));
    }
  }
}

TEST_F(ReplaceFile, LeavesTheTargetWhenTheTemporaryNameIsTaken) {
  temporary_.write("config.json", "old");
  ASSERT_EQ(::mkdir(temporary_.path(kTemporaryName).c_str(), 0700), 0);
  const auto refused = replace("new");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              StartsWith("create " + temporary_.path(kTemporaryName) + ": "));
  EXPECT_EQ(temporary_.read("config.json"), "old");
}

TEST_F(ReplaceFile, RemovesTheTemporaryWhenTheRenameFails) {
  ASSERT_EQ(::mkdir(temporary_.path("config.json").c_str(), 0700), 0);
  const auto refused = replace("new");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "replace " + temporary_.path("config.json") + ": rename: Is a directory");
  EXPECT_FALSE(temporary_.has(kTemporaryName));
}

TEST_F(ReplaceFile, TakesARandomTemporaryNameInASharedDirectory) {
  // Another user cannot take the name, and another writer's file stays.
  temporary_.write(kTemporaryName, "of another");
  ASSERT_TRUE(replace_shared_file(*directory_, "config.json", "new", mine(0644)));
  EXPECT_EQ(temporary_.read("config.json"), "new");
  EXPECT_EQ(status_of("config.json").st_mode & 07777U, 0644U);
  EXPECT_EQ(temporary_.read(kTemporaryName), "of another");
  EXPECT_THAT(*directory_->entries(), UnorderedElementsAre("config.json", kTemporaryName));
}

TEST_F(ReplaceFile, RefusesWhatIsNoFileName) {
  for (const char* name : {"", ".", "..", "a/b", "../config.json"}) {
    const auto refused = replace_file(*directory_, name, "x", mine(0600));
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument) << name;
  }
}

TEST_F(ReplaceFile, KeepsTheExtendedAttributesOfADurableFile) {
  temporary_.write("config.json", "old");
  const std::string file = temporary_.path("config.json");
  for (const char* name : {"user.podqos", "trusted.podqos"}) {
    if (::setxattr(file.c_str(), name, "label", 5, 0) != 0) continue;
    ASSERT_TRUE(replace_file(*directory_, "config.json", "new", {}, Durability::kDurable));
    EXPECT_EQ(temporary_.read("config.json"), "new");
    std::array<char, 8> label{};
    EXPECT_EQ(::getxattr(file.c_str(), name, label.data(), label.size()), 5) << name;
    EXPECT_STREQ(label.data(), "label");
    return;
  }
  GTEST_SKIP() << "this file system takes no extended attributes";
}

TEST_F(ReplaceFile, LeavesTheTargetOnAFullFileSystem) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount a small file system";
  expect_in_child([&] {
    ASSERT_TRUE(mount_private_tmpfs(temporary_.path().c_str(), "size=64k"));
    open(temporary_.path());
    ASSERT_TRUE(replace("old"));
    const auto refused = replace(std::string(100'000, 'x'));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().message,
              "replace " + temporary_.path("config.json") + ": write: No space left on device");
    EXPECT_EQ(temporary_.read("config.json"), "old");
    EXPECT_FALSE(temporary_.has(kTemporaryName));
  });
}

TEST_F(ReplaceFile, ShowsReadersTheOldOrTheNewContent) {
  const std::string a(20'000, 'a');
  const std::string b(30'000, 'b');
  ASSERT_TRUE(replace(a));
  const pid_t writer = start_child([&] {
    for (int i = 0; i < 300; ++i) {
      EXPECT_TRUE(replace(i % 2 == 0 ? b : a));
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
