#include "hook/bundle.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "common/codec/oci_config.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::hook {
namespace {

class BundleTest : public ::testing::Test {
 protected:
  BundleTest() { std::filesystem::create_directory(directory_.path("b")); }
  [[nodiscard]] std::string path() const { return directory_.path("b"); }
  [[nodiscard]] Bundle open() const {
    auto bundle = Bundle::open(path());
    if (!bundle) std::abort();
    return std::move(*bundle);
  }
  TemporaryDirectory directory_;
};

TEST_F(BundleTest, ResolvesSymlinksInItsPath) {
  std::filesystem::create_directory_symlink(path(), directory_.path("link"));
  const auto bundle = Bundle::open(directory_.path("link"));
  ASSERT_TRUE(bundle) << bundle.error().message;
  EXPECT_EQ(bundle->canonical(), path());
}

TEST_F(BundleTest, SaysWhichBundleIsNotThere) {
  const auto bundle = Bundle::open(directory_.path("nowhere"));
  ASSERT_FALSE(bundle);
  EXPECT_EQ(bundle.error().code, ErrorCode::kNotFound);
  EXPECT_NE(bundle.error().message.find(directory_.path("nowhere")), std::string::npos);
}

TEST_F(BundleTest, IsADirectory) {
  directory_.write("file", "");
  EXPECT_FALSE(Bundle::open(directory_.path("file")));
}

TEST_F(BundleTest, ReadsAConfigThatIsNotThereAsNotFound) {
  const auto config = open().read_config();
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ErrorCode::kNotFound);
}

TEST_F(BundleTest, ReplacesTheConfigKeepingOwnerAndMode) {
  directory_.write("b/config.json", "before");
  ASSERT_EQ(::chmod(directory_.path("b/config.json").c_str(), 0604), 0);
  const bool root = ::geteuid() == 0;
  if (root) {
    ASSERT_EQ(::chown(directory_.path("b/config.json").c_str(), 1234, 4321), 0);
  }
  Bundle bundle = open();
  ASSERT_TRUE(bundle.read_config());
  EXPECT_EQ(bundle.config(), "before");
  ASSERT_TRUE(bundle.write_config("after"));
  EXPECT_EQ(directory_.read("b/config.json"), "after");
  struct stat status{};
  ASSERT_EQ(::stat(directory_.path("b/config.json").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0604U);
  if (root) {
    EXPECT_EQ(status.st_uid, 1234U);
    EXPECT_EQ(status.st_gid, 4321U);
  }
}

TEST_F(BundleTest, LeavesNothingBesideTheConfig) {
  directory_.write("b/config.json", "before");
  Bundle bundle = open();
  ASSERT_TRUE(bundle.read_config());
  ASSERT_TRUE(bundle.write_config("after"));
  int files = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator{path()})
    ++files;
  EXPECT_EQ(files, 1);
}

TEST_F(BundleTest, ReadsAnotherNameToo) {
  directory_.write("b/other.json", "other");
  Bundle bundle = open();
  ASSERT_TRUE(bundle.read_config("other.json"));
  EXPECT_EQ(bundle.config(), "other");
}

TEST_F(BundleTest, FollowsNoSymlinkOutOfTheBundle) {
  directory_.write("secret", "secret");
  std::filesystem::create_symlink(directory_.path("secret"), directory_.path("b/config.json"));
  EXPECT_FALSE(open().read_config());
}

TEST_F(BundleTest, RefusesAPipe) {
  ASSERT_EQ(::mkfifo(directory_.path("b/config.json").c_str(), 0600), 0);
  EXPECT_FALSE(open().read_config());
}

TEST_F(BundleTest, RefusesAConfigBeyondTheLimit) {
  directory_.write("b/config.json", std::string(codec::kMaxConfigSize + 1, ' '));
  const auto config = open().read_config();
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, ErrorCode::kTooLarge);
}

TEST_F(BundleTest, StaysInTheDirectoryThatWasOpened) {
  directory_.write("b/config.json", "first");
  Bundle bundle = open();
  std::filesystem::rename(path(), directory_.path("moved"));
  std::filesystem::create_directory(path());
  directory_.write("b/config.json", "second");
  ASSERT_TRUE(bundle.read_config());
  EXPECT_EQ(bundle.config(), "first");
  ASSERT_TRUE(bundle.write_config("edited"));
  EXPECT_EQ(directory_.read("moved/config.json"), "edited");
  EXPECT_EQ(directory_.read("b/config.json"), "second");
}

TEST_F(BundleTest, NamesABundleThatIsGoneAsItWasNamed) {
  EXPECT_EQ(canonical_bundle("/nowhere/at/all"), "/nowhere/at/all");
  EXPECT_EQ(canonical_bundle(""), "");
  directory_.write("b/config.json", "{}");
  EXPECT_EQ(canonical_bundle(path() + "/../b/"), path());
}

TEST_F(BundleTest, KnowsNoBundleWithoutConfig) {
  EXPECT_EQ(canonical_bundle(path()), "");
  EXPECT_EQ(canonical_bundle("/"), "");
}

}  // namespace
}  // namespace podqos::hook
