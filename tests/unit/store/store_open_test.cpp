#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
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
  EXPECT_EQ(mode_of(""), 0700U);
  EXPECT_FALSE(store.dirty());
  EXPECT_EQ(store.node(), core::NodeState{});
  EXPECT_THAT(store.incidents(), IsEmpty());
}

TEST_F(StoreOpen, ToleratesATrailingSlash) {
  options_.path += "/";
  EXPECT_TRUE(open());
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
  EXPECT_EQ(store->node().sums.burstable.pods, 1);
  EXPECT_EQ(*store->pod("pod-1"), record_of("pod-1"));
}

TEST_F(StoreOpen, TimesOutWhileAnotherHoldsTheLock) {
  const Store holder = opened();
  const auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kTimeout);
  EXPECT_THAT(refused.error().message, StartsWith("lock " + path("lock") + ": "));
}

void make(const TemporaryDirectory& in, std::string_view name, mode_t mode, uid_t owner = 0) {
  const std::string path = in.path(name);
  ASSERT_EQ(::mkdir(path.c_str(), mode), 0);
  ASSERT_EQ(::chmod(path.c_str(), mode), 0);
  if (owner != 0) {
    ASSERT_EQ(::chown(path.c_str(), owner, 0), 0);
  }
}

/// A state directory at a place that is not safe.
struct UnsafePlace {
  std::function<void(const TemporaryDirectory&)> prepare;
  ErrorCode code;
  const char* says;
  const char* state = "state";
  bool needs_root = false;
};

TEST(StoreIn, RefusesAnUnsafePlace) {
  std::vector<UnsafePlace> places{
      {[](const auto&) {}, ErrorCode::kNotFound, "/a/b: No such file", "a/b"},
      {[](const auto& in) {
         make(in, "theirs", 0755, 12345);
         make(in, "theirs/between", 0755);
       },
       ErrorCode::kConflict, "../.. belongs to user 12345", "theirs/between/state", true},
      {[](const auto& in) {
         make(in, "real", 0700);
         ASSERT_EQ(::symlink("real", in.path("state").c_str()), 0);
       },
       ErrorCode::kConflict, "/state is a symlink"},
      {[](const auto& in) { make(in, "state", 0700, 1234); }, ErrorCode::kConflict,
       "/state belongs to user 1234, not to 0", "state", true},
      {[](const auto& in) { in.write("state", ""); }, ErrorCode::kIo, "Not a directory"},
  };
  for (const mode_t mode : {0777U, 0770U, 0702U})
    places.push_back({[mode](const auto& in) { make(in, "shared", mode); }, ErrorCode::kConflict,
                      "/.. is writable by others, who could replace the state: set stateDir",
                      "shared/state"});
  for (const mode_t mode : {0720U, 0702U, 01777U, 0777U})
    places.push_back({[mode](const auto& in) { make(in, "state", mode); }, ErrorCode::kConflict,
                      "/state is writable by others"});
  for (const UnsafePlace& place : places) {
    SCOPED_TRACE(place.says);
    if (place.needs_root && ::geteuid() != 0) continue;
    const TemporaryDirectory directory;
    place.prepare(directory);
    const std::string path = directory.path(place.state);
    for (const auto opening : {Opening::kReadUnlocked, Opening::kMake}) {
      const auto refused = Store::open({.path = path}, opening);
      // A reader finds a directory that is missing empty, and makes none.
      ASSERT_EQ(refused.has_value(),
                opening == Opening::kReadUnlocked && !directory.has(place.state));
      if (refused) continue;
      EXPECT_EQ(refused.error().code, place.code);
      EXPECT_THAT(refused.error().message, HasSubstr(path));
      EXPECT_THAT(refused.error().message, HasSubstr(place.says));
      EXPECT_FALSE(directory.has(cat(place.state, "/lock")));
      EXPECT_FALSE(directory.has("a")) << "no parent is made";
    }
  }
}

TEST_F(StoreOpen, TakesAStickyParent) {
  make(temporary_, "tmp", 01777);
  options_.path = temporary_.path("tmp/state");
  EXPECT_TRUE(open());
}

TEST_F(StoreOpen, ClosesADirectoryThatOthersMayRead) {
  ASSERT_EQ(::mkdir(options_.path.c_str(), 0755), 0);
  EXPECT_TRUE(open());
  EXPECT_EQ(mode_of(""), 0700U);
}

TEST_F(StoreOpen, RefusesSymlinkedFiles) {
  for (const char* name : {"lock", "node.json", "rows"}) {
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

/// Whatever it says: rows are a cache.
TEST_F(StoreOpen, MakesRowsThatAreLostFromTheRecords) {
  make_state();
  const std::string whole = read("rows");
  const std::vector<std::string> bad{"",
                                     "garbage",
                                     std::string(512, '\0'),
                                     whole.substr(0, whole.size() / 2),
                                     whole + whole,
                                     std::string(std::size_t{5} << 20U, 'x'),
                                     std::string{whole}.replace(whole.find(" 1,"), 3, " 2,")};
  for (const std::string& text : bad) {
    SCOPED_TRACE(text.size());
    write("rows", text);
    {
      Store store = opened();
      EXPECT_TRUE(store.dirty());
      EXPECT_THAT(store.incidents(), IsEmpty());
      EXPECT_EQ(store.node().sums.burstable.pods, 1);
    }
    compare();
    EXPECT_EQ(read("rows"), whole);
  }
  ASSERT_EQ(::unlink(path("rows").c_str()), 0);
  EXPECT_TRUE(opened().dirty());
  compare();
  EXPECT_EQ(read("rows"), whole);
}

TEST_F(StoreOpen, IsCleanWhereNoRecordIsThere) {
  make_state();
  ASSERT_EQ(::unlink(path("rows").c_str()), 0);
  ASSERT_EQ(::unlink(path("pods/pod-1.json").c_str()), 0);
  EXPECT_FALSE(opened().dirty());
}

/// What podqos before it had rows has left in /run: it is read once, and replaced.
TEST_F(StoreOpen, TakesOverTheStateOfTheReleaseBefore) {
  make_state();
  ASSERT_EQ(::unlink(path("rows").c_str()), 0);
  ASSERT_EQ(::unlink(path("node.json").c_str()), 0);
  write(
      "tiers.json",
      R"({"version":1,"writer":"0.1.0","sums":{"guaranteed":{"pods":0,"cpuMilli":0,)"
      R"("memoryBytes":0},"burstable":{"pods":1,"cpuMilli":250,"memoryBytes":1048576},)"
      R"("besteffort":{"pods":0,"cpuMilli":0,"memoryBytes":0},"requested":{"pods":1,)"
      R"("cpuMilli":250,"memoryBytes":1048576},"kubelets":{"pods":0,"cpuMilli":0,)"
      R"("memoryBytes":0}},"pending":[{"uid":"pod-1","id":"c1","bundle":"/b","pid":7,)"
      R"("startTime":99}],"revisits":[{"uid":"43","until":9,"cgroup":"/podqos/kubepods/pod43"}],)"
      R"("cut":[],"uncounted":[],"trees":[{"kubepods":"/podqos/kubepods","top":"/podqos",)"
      R"("sums":{"guaranteed":{"pods":0,"cpuMilli":0,"memoryBytes":0}}}],"weightFormula":"log"})");
  write("dirty", "");
  {
    Store store = opened();
    EXPECT_TRUE(store.dirty());
    EXPECT_EQ(store.node().trees.at(0).top, "/podqos");
    EXPECT_EQ(store.node().trees.at(0).sums.burstable.cpu, MilliCpu{250});
    EXPECT_EQ(store.node().weight_formula, core::WeightFormula::kLog);
    EXPECT_EQ(store.node().sums.burstable.cpu, MilliCpu{250});
  }
  compare();
  EXPECT_FALSE(has("tiers.json"));
  EXPECT_FALSE(has("dirty"));
  EXPECT_EQ(opened().node().trees.at(0).top, "/podqos");
}

TEST_F(StoreOpen, SetsACorruptNodeFileAside) {
  const std::string huge(codec::kMaxRecordSize + 1, ' ');
  const std::vector<std::string> bad{"", "{", "{\"version\":1,\"ver", "[]", "null", huge};
  for (const std::string& text : bad) {
    make_state();
    write("node.json", text);
    {
      Store store = opened();
      EXPECT_TRUE(store.dirty()) << text.substr(0, 20);
      EXPECT_THAT(store.node().trees, IsEmpty());
      EXPECT_EQ(store.node().sums.burstable.pods, 1);
      ASSERT_THAT(store.incidents(), SizeIs(1));
      EXPECT_THAT(store.incidents().front(),
                  StartsWith(path("node.json") + " is corrupt, renamed to node.json.corrupt-1: "));
      EXPECT_EQ(read("node.json.corrupt-1"), text);
      EXPECT_FALSE(has("node.json"));
    }
    compare();
    EXPECT_FALSE(opened().dirty());
    std::filesystem::remove_all(options_.path);
  }
}

TEST_F(StoreOpen, LeavesANodeFileOfANewerVersion) {
  make_state();
  const std::string newer = make_newer("node.json");
  const auto refused = open();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(refused.error().message, HasSubstr(path("node.json")));
  EXPECT_EQ(read("node.json"), newer);
}

}  // namespace
}  // namespace podqos::store
