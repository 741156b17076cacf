#include "common/sys/directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <thread>
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
  [[nodiscard]] virtual Directory root() const { return *Directory::open(place_.path()); }

  TemporaryDirectory place_;
};

/// In both ways of resolving a path.
class OpenBeneath : public DirectoryTree, public ::testing::WithParamInterface<Resolve> {
 protected:
  [[nodiscard]] Directory root() const override {
    return *Directory::open(place_.path(), GetParam());
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, OpenBeneath,
                         ::testing::Values(Resolve::kOpenat2, Resolve::kComponentwise),
                         [](const auto& way) {
                           return way.param == Resolve::kOpenat2 ? "Openat2" : "Componentwise";
                         });

TEST_P(OpenBeneath, ReadsAFile) {
  const auto file = root().open_file("a/b/file", O_RDONLY);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(read_all(file->fd.get(), 100, "file"), "content\n");
  EXPECT_NE(::fcntl(file->fd.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_P(OpenBeneath, OpensADirectory) {
  const auto below = root().open_directory("a/b");
  ASSERT_TRUE(below) << below.error().message;
  EXPECT_EQ(below->path(), place_.path("a/b"));
  EXPECT_EQ(below->read_file("file", 100), "content\n");
  for (const char* path : {"", "."}) {
    const auto same = root().open_directory(path);
    ASSERT_TRUE(same) << same.error().message;
    EXPECT_EQ(same->path(), place_.path());
    EXPECT_EQ(same->read_file("secret", 100), "secret");
  }
}

struct Attack {
  std::string path;
  ErrorCode want;
};

TEST_P(OpenBeneath, RefusesEveryWayOutToAFile) {
  using enum ErrorCode;
  for (const int flags : {O_RDONLY, O_WRONLY}) {
    for (const auto& [path, want] :
         {Attack{"", kInvalidArgument}, Attack{".", kInvalidArgument},
          Attack{"..", kInvalidArgument}, Attack{"../secret", kInvalidArgument},
          Attack{"a/../secret", kInvalidArgument}, Attack{"a/./b/file", kInvalidArgument},
          Attack{"a//b/file", kInvalidArgument}, Attack{"a/b/file/", kInvalidArgument},
          Attack{"/etc/passwd", kInvalidArgument},
          Attack{std::string{"a/b/file\0x", 10}, kInvalidArgument},
          Attack{std::string(256, 'x'), kInvalidArgument}, Attack{"a/b/link", kConflict},
          Attack{"a/link/file", kConflict}, Attack{"a/outside/passwd", kConflict},
          Attack{"a/b/link/x", kConflict}, Attack{"a/b", kConflict}, Attack{"a/fifo", kConflict},
          Attack{"a/b/none", kNotFound}, Attack{"a/none/file", kNotFound}}) {
      const auto file = root().open_file(path, flags);
      ASSERT_FALSE(file) << path;
      EXPECT_EQ(file.error().code, want) << path << ": " << file.error().message;
    }
  }
}

TEST_P(OpenBeneath, RefusesEveryWayOutToADirectory) {
  using enum ErrorCode;
  for (const auto& [path, want] :
       {Attack{"..", kInvalidArgument}, Attack{"a/../a", kInvalidArgument},
        Attack{"/etc", kInvalidArgument}, Attack{std::string{"a\0b", 3}, kInvalidArgument},
        Attack{"a/" + std::string(256, 'x'), kInvalidArgument}, Attack{"a/link", kConflict},
        Attack{"a/outside", kConflict}, Attack{"a/outside/init.d", kConflict},
        Attack{"a/b/file", kIo}, Attack{"secret/x", kIo}, Attack{"a/fifo", kIo},
        Attack{"a/none", kNotFound}}) {
    const auto directory = root().open_directory(path);
    ASSERT_FALSE(directory) << path;
    EXPECT_EQ(directory.error().code, want) << path << ": " << directory.error().message;
  }
}

TEST_P(OpenBeneath, NamesTheWholePath) {
  const auto file = root().open_file("a/b/none", O_RDONLY);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().message,
            "open " + place_.path("a/b/none") + ": No such file or directory");
}

TEST_P(OpenBeneath, MakesANewFileForItsOwnerOnly) {
  const mode_t before = ::umask(0);
  const auto file = root().open_file("a/new", O_RDWR | O_CREAT | O_EXCL);
  ::umask(before);
  ASSERT_TRUE(file) << file.error().message;
  struct stat status{};
  ASSERT_EQ(::fstat(file->fd.get(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
}

TEST_P(OpenBeneath, RefusesAnotherFileSystem) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting takes root";
  const int status = run_in_child([&] {
    if (!mount_private_tmpfs(place_.path("a/b").c_str(), "size=64k")) ::_exit(2);
    place_.write("a/b/file", "foreign");
    const auto file = root().open_file("a/b/file", O_RDONLY);
    ASSERT_FALSE(file);
    EXPECT_EQ(file.error().code, ErrorCode::kConflict);
    const auto directory = root().open_directory("a/b");
    ASSERT_FALSE(directory);
    EXPECT_EQ(directory.error().code, ErrorCode::kConflict);
  });
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "mounting is not allowed here";
  EXPECT_EQ(status, 0);
}

TEST_F(DirectoryTree, ReadAllEndsAtTheLimit) {
  // Around the size of one read as well.
  for (const std::size_t size : {0U, 1U, 7U, 65'535U, 65'536U, 65'537U, 200'000U}) {
    const std::string content(size, 'x');
    place_.write("file", content);
    for (const FileEnd end : {FileEnd::kEmptyRead, FileEnd::kShortRead}) {
      const auto read = [&](std::size_t limit) {
        const UniqueFd file{::open(place_.path("file").c_str(), O_RDONLY | O_CLOEXEC)};
        return read_all(file.get(), limit, "f", end);
      };
      EXPECT_EQ(read(size), content) << size;
      if (size == 0) continue;
      const auto larger = read(size - 1);
      ASSERT_FALSE(larger) << size;
      EXPECT_EQ(larger.error(),
                (Error{ErrorCode::kTooLarge, cat("read f: more than ", size - 1, " bytes")}));
    }
  }
  EXPECT_EQ(root().read_file("secret", 5).error().message,
            cat("read ", place_.path("secret"), ": more than 5 bytes"));
}

TEST(ReadAll, WaitsForAWriterThatWrites) {
  using std::chrono::milliseconds;
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd read_end{ends[0]};
  UniqueFd write_end{ends[1]};
  // On a busy machine it may be held up.
  auto longest = milliseconds{0};
  std::thread writer{[&] {
    for (int i = 0; i < 12; ++i) {
      const auto begun = std::chrono::steady_clock::now();
      ::usleep(100'000);
      EXPECT_EQ(::write(write_end.get(), "x", 1), 1);
      longest = std::max(longest,
                         std::chrono::ceil<milliseconds>(std::chrono::steady_clock::now() - begun));
    }
  }};
  // In all it takes longer than that, and is not closed afterwards.
  const auto read = read_all(read_end.get(), 100, "pipe", FileEnd::kEmptyRead, milliseconds{1000});
  writer.join();
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kTimeout);
  char left = 0;
  write_end = UniqueFd{};
  const ssize_t rest = ::read(read_end.get(), &left, 1);
  if (longest < milliseconds{900}) {
    EXPECT_EQ(rest, 0) << "all that was written has been read";
  }
}

TEST_F(DirectoryTree, ListsEverythingAsOftenAsAsked) {
  const auto directory = root().open_directory("a");
  ASSERT_TRUE(directory);
  for (int time = 0; time < 2; ++time)
    EXPECT_THAT(directory->entries().value(), UnorderedElementsAre("b", "link", "outside", "fifo"));
  EXPECT_THAT(directory->subdirectories().value(), UnorderedElementsAre("b"));
}

TEST(HasNoSubdirectories, IsToldByTheLinksOfADirectory) {
  struct stat status{};
  status.st_mode = S_IFDIR | 0755;
  status.st_nlink = 2;
  EXPECT_TRUE(has_no_subdirectories(status));
  status.st_nlink = 3;
  EXPECT_FALSE(has_no_subdirectories(status));
  status.st_nlink = 1;  // btrfs, overlayfs
  EXPECT_FALSE(has_no_subdirectories(status));
  status.st_mode = S_IFREG | 0600;
  status.st_nlink = 2;
  EXPECT_FALSE(has_no_subdirectories(status));
}

TEST_F(DirectoryTree, ListsMoreThanOneBufferHoldsAndNoMoreThanAsked) {
  for (int i = 0; i < 1'500; ++i) {
    make("a/b/directory-" + std::to_string(i));
    place_.write("a/b/entry-" + std::to_string(i), "");
  }
  const auto directory = root().open_directory("a/b");
  EXPECT_EQ(directory->entries()->size(), 3'002U);  // "file" and "link" are there too
  EXPECT_EQ(directory->subdirectories()->size(), 1'500U);
  EXPECT_EQ(directory->subdirectories(7)->size(), 7U);
}

TEST_F(DirectoryTree, MakesADirectoryOrSaysThatItIsThere) {
  EXPECT_EQ(root().make_directory("new", 0755), true);
  EXPECT_EQ(root().make_directory("new", 0755), false);
  EXPECT_EQ(root().open_directory("a")->make_directory("link", 0755).error().code,
            ErrorCode::kConflict);
  for (const char* name : {"", ".", "..", "a/c", "/c"}) {
    const auto made = root().make_directory(name, 0755);
    ASSERT_FALSE(made) << name;
    EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument) << name;
  }
}

TEST_F(DirectoryTree, RemovesADirectoryOrSaysThatItIsNotThere) {
  make("empty");
  EXPECT_EQ(root().remove_directory("empty"), true);
  EXPECT_EQ(root().remove_directory("empty"), false);
  EXPECT_EQ(root().remove_directory("a").error(),
            (Error{ErrorCode::kBusy, "rmdir " + place_.path("a") + ": Directory not empty"}));
}

TEST_F(DirectoryTree, RemovesALinkAndNotItsTarget) {
  const Directory a = *root().open_directory("a");
  EXPECT_EQ(a.remove_file("link"), true);
  EXPECT_EQ(a.remove_file("link"), false);
  EXPECT_TRUE(place_.has("a/b/file"));
}

TEST(DirectoryOpen, WritesPathsForATerminal) {
  EXPECT_EQ(Directory::open("/\x1b[31m").error().message,
            "open /\\x1b[31m: No such file or directory");
  EXPECT_EQ(Directory::open("/")->path_of("a\x1b"), "/a\\x1b");
  EXPECT_EQ(Directory::open("/proc/")->path_of("1"), "/proc/1");
}

TEST(DirectoryOpen, NamesThePathThatIsMissing) {
  const auto directory = Directory::open("/nonexistent/podqos");
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error(),
            (Error{ErrorCode::kNotFound, "open /nonexistent/podqos: No such file or directory"}));
}

}  // namespace
}  // namespace podqos::sys
