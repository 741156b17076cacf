#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/codec/record_json.h"
#include "tests/unit/store/store_fixture.h"

namespace podqos::store {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

class StoreOpen : public StoreTest {};

TEST_F(StoreOpen, MakesAPrivateDirectoryThatIsCleanAndEmpty) {
  Store store = opened();
  struct stat made{};
  ASSERT_EQ(::stat(options_.path.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 07777U, 0700U);
  EXPECT_FALSE(store.dirty());
  EXPECT_EQ(store.tiers(), core::TiersRecord{});
  EXPECT_THAT(store.incidents(), IsEmpty());
}

TEST_F(StoreOpen, ToleratesATrailingSlash) {
  options_.path += "/";
  EXPECT_TRUE(open());
}

TEST_F(StoreOpen, DoesNotMakeParents) {
  options_.path = temporary_.path("a/b");
  const auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(refused.error().message, HasSubstr(options_.path));
  EXPECT_FALSE(temporary_.has("a"));
}

TEST_F(StoreOpen, ExistingMakesNoDirectory) {
  const auto refused = Store::open(options_, Opening::kExisting);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kNotFound);
  EXPECT_FALSE(temporary_.has("state"));
}

TEST_F(StoreOpen, ExistingFindsWhatWasWritten) {
  make_state();
  auto store = Store::open(options_, Opening::kExisting);
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ(store->tiers().sums.burstable.pods, 1);
  EXPECT_EQ(*store->pod("pod-1"), record_of("pod-1"));
}

TEST_F(StoreOpen, TimesOutWhileAnotherHoldsTheLock) {
  const Store holder = opened();
  const auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(refused.error().message, StartsWith("lock " + path("lock") + ": "));
}

TEST_F(StoreOpen, RefusesAParentOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give a directory away";
  ASSERT_EQ(::mkdir(temporary_.path("theirs").c_str(), 0755), 0);
  ASSERT_EQ(::mkdir(temporary_.path("theirs/between").c_str(), 0755), 0);
  ASSERT_EQ(::chown(temporary_.path("theirs").c_str(), 12345, 0), 0);
  options_.path = temporary_.path("theirs/between/state");
  const auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_THAT(refused.error().message, HasSubstr("../.. belongs to user 12345"));
  EXPECT_FALSE(temporary_.has("theirs/between/state/lock"));
}

TEST_F(StoreOpen, RefusesAParentThatOthersCanWriteTo) {
  ASSERT_EQ(::mkdir(temporary_.path("shared").c_str(), 0700), 0);
  options_.path = temporary_.path("shared/state");
  for (const mode_t mode : {mode_t{0777}, mode_t{0770}, mode_t{0702}}) {
    ASSERT_EQ(::chmod(temporary_.path("shared").c_str(), mode), 0);
    const auto refused = open();
    ASSERT_FALSE(refused) << mode;
    EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
    EXPECT_THAT(refused.error().message, HasSubstr("/.. is writable by others"));
    EXPECT_THAT(refused.error().message, HasSubstr("stateDir"));
  }
}

TEST_F(StoreOpen, TakesAStickyParent) {
  ASSERT_EQ(::mkdir(temporary_.path("tmp").c_str(), 0700), 0);
  ASSERT_EQ(::chmod(temporary_.path("tmp").c_str(), 01777), 0);
  options_.path = temporary_.path("tmp/state");
  EXPECT_TRUE(open());
}

TEST_F(StoreOpen, RefusesASymlinkedDirectory) {
  ASSERT_EQ(::mkdir(temporary_.path("real").c_str(), 0700), 0);
  ASSERT_EQ(::symlink("real", options_.path.c_str()), 0);
  const auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_EQ(refused.error().message, "state directory " + options_.path + " is a symlink");
  EXPECT_FALSE(temporary_.has("real/lock"));
}

TEST_F(StoreOpen, RefusesADirectoryThatOthersMayWrite) {
  for (const mode_t mode : {0720U, 0702U, 01777U}) {
    ::mkdir(options_.path.c_str(), 0700);
    ASSERT_EQ(::chmod(options_.path.c_str(), mode), 0);
    const auto refused = open();
    ASSERT_FALSE(refused) << mode;
    EXPECT_EQ(refused.error().code, ErrorCode::kConflict) << mode;
    EXPECT_THAT(refused.error().message, HasSubstr("writable by others")) << mode;
  }
}

TEST_F(StoreOpen, ClosesADirectoryThatOthersMayRead) {
  ASSERT_EQ(::mkdir(options_.path.c_str(), 0755), 0);
  EXPECT_TRUE(open());
  struct stat after{};
  ASSERT_EQ(::stat(options_.path.c_str(), &after), 0);
  EXPECT_EQ(after.st_mode & 07777U, 0700U);
}

TEST_F(StoreOpen, RefusesADirectoryOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  ASSERT_EQ(::mkdir(options_.path.c_str(), 0700), 0);
  ASSERT_EQ(::chown(options_.path.c_str(), 1234, 0), 0);
  const auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
  EXPECT_EQ(refused.error().message,
            "state directory " + options_.path + " belongs to user 1234, not to 0");
}

TEST_F(StoreOpen, RefusesAFileInTheDirectorysPlace) {
  temporary_.write("state", "");
  EXPECT_FALSE(open());
}

TEST_F(StoreOpen, RefusesSymlinkedFiles) {
  for (const char* name : {"lock", "tiers.json"}) {
    ASSERT_EQ(::mkdir(options_.path.c_str(), 0700), 0);
    temporary_.write("victim", "precious");
    ASSERT_EQ(::symlink("../victim", path(name).c_str()), 0);
    const auto refused = open();
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, ErrorCode::kConflict) << name;
    EXPECT_EQ(temporary_.read("victim"), "precious");
    std::filesystem::remove_all(options_.path);
  }
}

TEST_F(StoreOpen, RefusesSymlinkedSubdirectories) {
  ASSERT_EQ(::mkdir(temporary_.path("victim").c_str(), 0700), 0);
  make_state();
  std::filesystem::remove_all(path("pods"));
  std::filesystem::remove_all(path("containers"));
  ASSERT_EQ(::symlink("../victim", path("pods").c_str()), 0);
  ASSERT_EQ(::symlink("../victim", path("containers").c_str()), 0);
  Store store = opened();
  EXPECT_FALSE(store.pod("pod-1"));
  EXPECT_FALSE(store.put_pod(record_of("pod-1")));
  EXPECT_FALSE(store.put_entry(entry_of("c1", "pod-1")));
  EXPECT_TRUE(std::filesystem::is_empty(temporary_.path("victim")));
}

TEST_F(StoreOpen, IsDirtyWhenOnlyTheTiersFileIsMissing) {
  make_state();
  ASSERT_EQ(::unlink(path("tiers.json").c_str()), 0);
  Store store = opened();
  EXPECT_TRUE(store.dirty());
  EXPECT_EQ(store.tiers(), core::TiersRecord{});
}

TEST_F(StoreOpen, IsCleanWhenTheTiersFileIsMissingAndNoRecordIsThere) {
  make_state();
  ASSERT_EQ(::unlink(path("tiers.json").c_str()), 0);
  ASSERT_EQ(::unlink(path("pods/pod-1.json").c_str()), 0);
  EXPECT_FALSE(opened().dirty());
}

TEST_F(StoreOpen, SetsACorruptTiersFileAside) {
  const std::string huge(codec::kMaxRecordSize + 1, ' ');
  const std::vector<std::string> bad{"", "{", "{\"version\":1,\"ver", "[]", "null", huge};
  for (const std::string& text : bad) {
    make_state();
    write("tiers.json", text);
    {
      Store store = opened();
      EXPECT_TRUE(store.dirty()) << text.substr(0, 20);
      EXPECT_EQ(store.tiers(), core::TiersRecord{});
      ASSERT_THAT(store.incidents(), SizeIs(1));
      EXPECT_THAT(
          store.incidents().front(),
          StartsWith(path("tiers.json") + " is corrupt, renamed to tiers.json.corrupt-1: "));
      EXPECT_EQ(read("tiers.json.corrupt-1"), text);
      EXPECT_FALSE(has("tiers.json"));
    }
    EXPECT_TRUE(opened().dirty()) << "still to be recomputed";
    {
      Store store = opened();
      store.recomputed();
      EXPECT_TRUE(store.commit());
    }
    EXPECT_FALSE(opened().dirty());
    std::filesystem::remove_all(options_.path);
  }
}

TEST_F(StoreOpen, LeavesATiersFileOfANewerVersion) {
  make_state();
  std::string newer = read("tiers.json");
  const std::string version = "\"version\":1";
  const auto at = newer.find(version);
  ASSERT_NE(at, std::string::npos) << newer;
  newer.replace(at, version.size(), "\"version\":2");
  write("tiers.json", newer);
  const auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(refused.error().message, HasSubstr(path("tiers.json")));
  EXPECT_EQ(read("tiers.json"), newer);
}

}  // namespace
}  // namespace podqos::store
