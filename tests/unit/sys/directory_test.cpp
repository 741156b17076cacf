#include "common/sys/directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "tests/unit/child_process.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::sys {
namespace {

using ::testing::UnorderedElementsAre;

/// ROOT/a/b/file, and around it what an attacker could put there.
class DirectoryTree : public ::testing::Test {
 protected:
  DirectoryTree() {
    make("a");
    make("a/b");
    place_.write("a/b/file", "content\n");
    place_.write("secret", "secret");
    EXPECT_EQ(::symlink("b", place_.path("a/link").c_str()), 0);
    EXPECT_EQ(::symlink("file", place_.path("a/b/link").c_str()), 0);
    EXPECT_EQ(::symlink("/etc", place_.path("a/outside").c_str()), 0);
    EXPECT_EQ(::mkfifo(place_.path("a/fifo").c_str(), 0600), 0);
  }

  void make(std::string_view name) { EXPECT_EQ(::mkdir(place_.path(name).c_str(), 0755), 0); }
  [[nodiscard]] Directory root() const { return *Directory::open(place_.path()); }

  TemporaryDirectory place_;
};

struct AttackCase {
  const char* name;
  std::string path;
  ErrorCode want;
};

const std::vector<AttackCase>& file_attacks() {
  static const std::vector<AttackCase> kCases = {
      {"Empty", "", ErrorCode::kInvalidArgument},
      {"Dot", ".", ErrorCode::kInvalidArgument},
      {"DotDot", "..", ErrorCode::kInvalidArgument},
      {"DotDotInFront", "../secret", ErrorCode::kInvalidArgument},
      {"DotDotInside", "a/../secret", ErrorCode::kInvalidArgument},
      {"DotInside", "a/./b/file", ErrorCode::kInvalidArgument},
      {"EmptyComponent", "a//b/file", ErrorCode::kInvalidArgument},
      {"TrailingSlash", "a/b/file/", ErrorCode::kInvalidArgument},
      {"Absolute", "/etc/passwd", ErrorCode::kInvalidArgument},
      {"Nul", std::string{"a/b/file\0x", 10}, ErrorCode::kInvalidArgument},
      {"LongComponent", std::string(256, 'x'), ErrorCode::kInvalidArgument},
      {"SymlinkAtTheEnd", "a/b/link", ErrorCode::kConflict},
      {"SymlinkInTheMiddle", "a/link/file", ErrorCode::kConflict},
      {"SymlinkOutside", "a/outside/passwd", ErrorCode::kConflict},
      {"MagicLink", "a/b/link/x", ErrorCode::kConflict},
      {"Directory", "a/b", ErrorCode::kConflict},
      {"Fifo", "a/fifo", ErrorCode::kConflict},
      {"Missing", "a/b/none", ErrorCode::kNotFound},
      {"MissingInTheMiddle", "a/none/file", ErrorCode::kNotFound},
  };
  return kCases;
}

class OpenFile : public DirectoryTree, public ::testing::WithParamInterface<Resolve> {};

TEST_P(OpenFile, ReadsAFileBeneath) {
  const auto file = root().open_file("a/b/file", O_RDONLY, GetParam());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(read_all(file->fd.get(), 100, "file"), "content\n");
  EXPECT_NE(::fcntl(file->fd.get(), F_GETFD) & FD_CLOEXEC, 0);
}

class ReadFile : public DirectoryTree {
 protected:
  [[nodiscard]] UniqueFd open_with(const std::string& content) {
    place_.write("file", content);
    return UniqueFd{::open(place_.path("file").c_str(), O_RDONLY | O_CLOEXEC)};
  }
};

TEST_F(ReadFile, EndsAtTheLimit) {
  // Around the size of one read as well.
  for (const std::size_t size : {0U, 1U, 7U, 65'535U, 65'536U, 65'537U, 200'000U}) {
    const std::string content(size, 'x');
    for (const FileEnd end : {FileEnd::kEmptyRead, FileEnd::kShortRead}) {
      EXPECT_EQ(read_all(open_with(content).get(), size, "f", end), content) << size;
      if (size == 0) continue;
      const auto larger = read_all(open_with(content).get(), size - 1, "f", end);
      ASSERT_FALSE(larger) << size;
      EXPECT_EQ(larger.error(),
                (Error{ErrorCode::kTooLarge, cat("read f: more than ", size - 1, " bytes")}));
    }
  }
}

TEST_P(OpenFile, RefusesEveryWayOut) {
  for (const int flags : {O_RDONLY, O_WRONLY}) {
    for (const AttackCase& attack : file_attacks()) {
      const auto file = root().open_file(attack.path, flags, GetParam());
      ASSERT_FALSE(file) << attack.name;
      EXPECT_EQ(file.error().code, attack.want) << attack.name << ": " << file.error().message;
    }
  }
}

TEST_P(OpenFile, NamesTheWholePath) {
  const auto file = root().open_file("a/b/none", O_RDONLY, GetParam());
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message,
            "open " + place_.path("a/b/none") + ": No such file or directory");
}

TEST_P(OpenFile, MakesANewFileForItsOwnerOnly) {
  const mode_t before = ::umask(0);
  const auto file = root().open_file("a/new", O_RDWR | O_CREAT | O_EXCL, GetParam());
  ::umask(before);
  ASSERT_TRUE(file) << file.error().message;
  struct stat status{};
  ASSERT_EQ(::fstat(file->fd.get(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
}

TEST_P(OpenFile, RefusesAnotherFileSystem) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting takes root";
  const Resolve resolve = GetParam();
  const int status = run_in_child([&] {
    if (!mount_private_tmpfs(place_.path("a/b").c_str(), "size=64k")) ::_exit(2);
    place_.write("a/b/file", "foreign");
    const auto file = root().open_file("a/b/file", O_RDONLY, resolve);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code, ErrorCode::kConflict);
    const auto directory = root().open_directory("a/b", resolve);
    ASSERT_FALSE(directory);
    EXPECT_EQ(directory.error().code, ErrorCode::kConflict);
  });
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "mounting is not allowed here";
  EXPECT_EQ(status, 0);
}

INSTANTIATE_TEST_SUITE_P(Ways, OpenFile,
                         ::testing::Values(Resolve::kOpenat2, Resolve::kComponentwise),
                         [](const auto& way) {
                           return way.param == Resolve::kOpenat2 ? "Openat2" : "Componentwise";
                         });

class OpenDirectory : public DirectoryTree, public ::testing::WithParamInterface<Resolve> {};

TEST_P(OpenDirectory, OpensBelow) {
  const auto below = root().open_directory("a/b", GetParam());
  ASSERT_TRUE(below) << below.error().message;
  EXPECT_EQ(below->path(), place_.path("a/b"));
  EXPECT_EQ(below->read_file("file", 100), "content\n");
}

TEST_P(OpenDirectory, EmptyAndDotAreTheDirectoryItself) {
  for (const char* path : {"", "."}) {
    const auto same = root().open_directory(path, GetParam());
    ASSERT_TRUE(same) << same.error().message;
    EXPECT_EQ(same->path(), place_.path());
    EXPECT_EQ(same->read_file("secret", 100), "secret");
  }
}

TEST_P(OpenDirectory, RefusesEveryWayOut) {
  const std::vector<AttackCase> attacks = {
      {"DotDot", "..", ErrorCode::kInvalidArgument},
      {"DotDotInside", "a/../a", ErrorCode::kInvalidArgument},
      {"Absolute", "/etc", ErrorCode::kInvalidArgument},
      {"Nul", std::string{"a\0b", 3}, ErrorCode::kInvalidArgument},
      {"LongComponent", "a/" + std::string(256, 'x'), ErrorCode::kInvalidArgument},
      {"SymlinkAtTheEnd", "a/link", ErrorCode::kConflict},
      {"SymlinkOutside", "a/outside", ErrorCode::kConflict},
      {"SymlinkInTheMiddle", "a/outside/init.d", ErrorCode::kConflict},
      {"File", "a/b/file", ErrorCode::kIo},
      {"FileInTheMiddle", "secret/x", ErrorCode::kIo},
      {"Fifo", "a/fifo", ErrorCode::kIo},
      {"Missing", "a/none", ErrorCode::kNotFound},
  };
  for (const AttackCase& attack : attacks) {
    const auto directory = root().open_directory(attack.path, GetParam());
    ASSERT_FALSE(directory) << attack.name;
    EXPECT_EQ(directory.error().code, attack.want)
        << attack.name << ": " << directory.error().message;
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, OpenDirectory,
                         ::testing::Values(Resolve::kOpenat2, Resolve::kComponentwise),
                         [](const auto& way) {
                           return way.param == Resolve::kOpenat2 ? "Openat2" : "Componentwise";
                         });

TEST_F(ReadFile, NamesTheFileBeyondTheLimit) {
  EXPECT_EQ(root().read_file("secret", 5).error().message,
            cat("read ", place_.path("secret"), ": more than 5 bytes"));
}

class DirectoryEntries : public DirectoryTree {};

TEST_F(DirectoryEntries, ListsEverythingAsOftenAsAsked) {
  const auto directory = root().open_directory("a");
  ASSERT_TRUE(directory);
  for (int time = 0; time < 2; ++time) {
    const auto names = directory->entries();
    ASSERT_TRUE(names) << names.error().message;
    EXPECT_THAT(*names, UnorderedElementsAre("b", "link", "outside", "fifo"));
  }
}

TEST_F(DirectoryEntries, ASymlinkIsNoSubdirectory) {
  const auto names = root().open_directory("a")->subdirectories();
  ASSERT_TRUE(names) << names.error().message;
  EXPECT_THAT(*names, UnorderedElementsAre("b"));
}

TEST_F(DirectoryEntries, ListsNoMoreSubdirectoriesThanAsked) {
  for (int i = 0; i < 1'500; ++i)
    make("a/b/directory-" + std::to_string(i));
  const auto directory = root().open_directory("a/b");
  EXPECT_EQ(directory->subdirectories()->size(), 1'500U);
  EXPECT_EQ(directory->subdirectories(7)->size(), 7U);
}

TEST_F(DirectoryEntries, ListsMoreThanOneBufferHolds) {
  for (int i = 0; i < 1'500; ++i)
    place_.write("a/b/entry-" + std::to_string(i), "");
  const auto names = root().open_directory("a/b")->entries();
  ASSERT_TRUE(names);
  EXPECT_EQ(names->size(), 1'502U);  // "file" and "link" are there too
}

class MakeDirectory : public DirectoryTree {};

TEST_F(MakeDirectory, SaysWhetherItWasNew) {
  EXPECT_EQ(root().make_directory("new", 0755), true);
  EXPECT_EQ(root().make_directory("new", 0755), false);
}

TEST_F(MakeDirectory, RefusesAnotherThingOfThatName) {
  const auto made = root().open_directory("a")->make_directory("link", 0755);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kConflict);
}

TEST_F(MakeDirectory, TakesOneComponentOnly) {
  for (const char* name : {"", ".", "..", "a/c", "/c"}) {
    const auto made = root().make_directory(name, 0755);
    ASSERT_FALSE(made) << name;
    EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument) << name;
  }
}

class RemoveDirectory : public DirectoryTree {};

TEST_F(RemoveDirectory, SaysWhetherItWasThere) {
  make("empty");
  EXPECT_EQ(root().remove_directory("empty"), true);
  EXPECT_EQ(root().remove_directory("empty"), false);
}

TEST_F(RemoveDirectory, AFullOneIsBusy) {
  const auto removed = root().remove_directory("a");
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error(),
            (Error{ErrorCode::kBusy, "rmdir " + place_.path("a") + ": Directory not empty"}));
}

TEST_F(RemoveDirectory, RemovesALinkAndNotItsTarget) {
  const Directory a = *root().open_directory("a");
  EXPECT_EQ(a.remove_file("link"), true);
  EXPECT_EQ(a.remove_file("link"), false);
  EXPECT_TRUE(place_.has("a/b/file"));
}

TEST(DirectoryOpen, NamesThePathThatIsMissing) {
  const auto directory = Directory::open("/nonexistent/podqos");
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error(),
            (Error{ErrorCode::kNotFound, "open /nonexistent/podqos: No such file or directory"}));
}

}  // namespace
}  // namespace podqos::sys
