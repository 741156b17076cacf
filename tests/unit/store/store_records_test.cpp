#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/codec/record_json.h"
#include "tests/unit/store/store_fixture.h"

namespace podqos::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

class StorePods : public StoreTest {};

TEST_F(StorePods, WritesNoBytesThatJsonCannotHold) {
  Store store = opened();
  core::PodRecord record = record_of("pod-1");
  record.cgroup = "/podqos/\xff";
  const auto put = store.put_pod(record);
  ASSERT_FALSE(put);
  EXPECT_THAT(put.error().message,
              HasSubstr("record of pod pod-1: the path of its bundle or cgroup"));
  EXPECT_EQ(*store.pod("pod-1"), std::nullopt);
}

TEST_F(StorePods, TellsTheTextOfARecord) {
  Store store = opened();
  EXPECT_TRUE(store.put_pod(record_of("pod-1")));
  EXPECT_EQ(store.text_of(record_of("pod-1")), read("pods/pod-1.json"));
  auto changed = record_of("pod-1");
  changed.complete = true;
  EXPECT_EQ(store.text_of(changed), codec::format_pod_record(changed)) << "not what was put last";
}

TEST_F(StorePods, KeepsAndErasesRecords) {
  Store store = opened();
  EXPECT_EQ(*store.pod("pod-1"), std::nullopt);
  EXPECT_TRUE(store.put_pod(record_of("pod-1")));
  EXPECT_TRUE(store.put_pod(record_of("0a.b")));
  EXPECT_EQ(*store.pod("pod-1"), record_of("pod-1"));
  auto changed = record_of("pod-1");
  changed.complete = true;
  EXPECT_TRUE(store.put_pod(changed));
  EXPECT_EQ(*store.pod("pod-1"), changed);
  EXPECT_THAT(*store.pod_uids(), ElementsAre("0a.b", "pod-1"));
  EXPECT_TRUE(store.erase_pod("pod-1"));
  EXPECT_TRUE(store.erase_pod("pod-1")) << "twice is no error";
  EXPECT_EQ(*store.pod("pod-1"), std::nullopt);
  EXPECT_THAT(*store.pod_uids(), ElementsAre("0a.b"));
}

TEST_F(StorePods, WritesPrivateFiles) {
  make_state();
  for (const char* name : {"lock", "node.json", "rows", "pods/pod-1.json"})
    EXPECT_EQ(mode_of(name), 0600U) << name;
}

TEST_F(StorePods, RefusesUidsThatAreNoFileName) {
  Store store = opened();
  using namespace std::string_view_literals;
  const std::vector<std::string_view> bad{"",    ".",   "..",   "a/b",   "../x",
                                          "a b", "a_b", "a\nb", "a\0b"sv};
  for (const std::string_view uid : bad) {
    EXPECT_EQ(store.pod(uid).error().code, ErrorCode::kInvalidArgument) << uid;
    EXPECT_EQ(store.put_pod(record_of(std::string{uid})).error().code, ErrorCode::kInvalidArgument)
        << uid;
    EXPECT_EQ(store.erase_pod(uid).error().code, ErrorCode::kInvalidArgument) << uid;
  }
  EXPECT_FALSE(store.put_pod(record_of(std::string(129, 'a'))));
  EXPECT_TRUE(store.put_pod(record_of(std::string(128, 'a'))));
}

TEST_F(StorePods, RefusesARecordThatCouldNotBeReadBack) {
  Store store = opened();
  core::PodRecord large = record_of("pod-1");
  large.sandbox_id = std::string(codec::kMaxRecordSize, 'a');
  EXPECT_EQ(store.put_pod(large).error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(*store.pod("pod-1"), std::nullopt);
}

TEST_F(StorePods, SetsACorruptRecordAsideAndStaysDirtyUntilAllIsCompared) {
  make_state();
  write("pods/pod-1.json", "{\"version\":1,");
  write("pods/pod-1.json.corrupt-1", "an older accident");
  {
    Store store = opened();
    EXPECT_FALSE(store.dirty());
    EXPECT_EQ(*store.pod("pod-1"), std::nullopt);
    EXPECT_TRUE(store.dirty());
    ASSERT_THAT(store.incidents(), SizeIs(1));
    EXPECT_THAT(
        store.incidents().front(),
        StartsWith(path("pods/pod-1.json") + " is corrupt, renamed to pod-1.json.corrupt-2: "));
    EXPECT_EQ(read("pods/pod-1.json.corrupt-1"), "an older accident");
    EXPECT_EQ(read("pods/pod-1.json.corrupt-2"), "{\"version\":1,");
    EXPECT_THAT(*store.pod_uids(), IsEmpty());
    EXPECT_TRUE(store.commit());
  }
  compare();
  EXPECT_FALSE(opened().dirty());
}

TEST_F(StorePods, TakesEmptyHugeAndForeignRecordsForCorrupt) {
  make_state();
  const std::string foreign = read("pods/pod-1.json");
  write("pods/empty.json", "");
  write("pods/huge.json", std::string(codec::kMaxRecordSize + 1, ' '));
  write("pods/foreign.json", foreign);
  Store store = opened();
  for (const char* uid : {"empty", "huge", "foreign"}) {
    const auto found = store.pod(uid);
    ASSERT_TRUE(found) << uid;
    EXPECT_EQ(*found, std::nullopt) << uid;
    EXPECT_TRUE(has("pods/" + std::string{uid} + ".json.corrupt-1")) << uid;
  }
  EXPECT_THAT(store.incidents(), SizeIs(3));
}

TEST_F(StorePods, LeavesARecordOfANewerVersion) {
  make_state();
  const std::string newer = make_newer("pods/pod-1.json");
  Store store = opened();
  const auto refused = store.pod("pod-1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(refused.error().message, HasSubstr(path("pods/pod-1.json")));
  EXPECT_EQ(read("pods/pod-1.json"), newer);
  EXPECT_FALSE(store.dirty());
}

TEST_F(StorePods, RefusesASymlinkedRecord) {
  make_state();
  ASSERT_EQ(::unlink(path("pods/pod-1.json").c_str()), 0);
  temporary_.write("victim", "precious");
  ASSERT_EQ(::symlink("../../victim", path("pods/pod-1.json").c_str()), 0);
  Store store = opened();
  EXPECT_EQ(store.pod("pod-1").error().code, ErrorCode::kConflict);
}

// Published test values of the 64-bit FNV-1a.
TEST(IndexName, IsFnv1aAsHex) {
  EXPECT_EQ(index_name(""), "cbf29ce484222325");
  EXPECT_EQ(index_name("a"), "af63dc4c8601ec8c");
  EXPECT_EQ(index_name("b"), "af63df4c8601f1a5");
  EXPECT_EQ(index_name("foobar"), "85944171f73967e8");
}

TEST(IsIndexName, AcceptsOnlyWholeNames) {
  EXPECT_TRUE(is_index_name("85944171f73967e8"));
  EXPECT_FALSE(is_index_name("85944171F73967E8"));
  EXPECT_FALSE(is_index_name("85944171f73967e"));
  EXPECT_FALSE(is_index_name(".85944171f73967e8.podqos-tmp"));
  EXPECT_FALSE(is_index_name("85944171f73967e8.corrupt-1"));
}

class StoreIndex : public StoreTest {
 protected:
  [[nodiscard]] bool has_entry(std::string_view id) const {
    struct stat found{};
    return ::lstat(path("containers/" + index_name(id)).c_str(), &found) == 0;
  }
};

/// Two runtimes, each with a container of that id.
TEST_F(StoreIndex, LeadsToEachPodWithTheId) {
  Store store = opened();
  EXPECT_THAT(*store.uids_with("c1"), IsEmpty());
  EXPECT_TRUE(store.put_entry(entry_of("c1", "pod-1")));
  EXPECT_TRUE(store.put_entry(entry_of("c1", "pod-2")));
  EXPECT_THAT(*store.uids_with("c1"), ElementsAre("pod-1", "pod-2"));
  EXPECT_TRUE(store.put_entry(entry_of("c2", "pod-1")));
  EXPECT_THAT(*store.all_entries(),
              UnorderedElementsAre(entry_of("c1", "pod-1"), entry_of("c1", "pod-2"),
                                   entry_of("c2", "pod-1")));
  EXPECT_TRUE(store.erase_entry(entry_of("c1", "pod-1")));
  EXPECT_THAT(*store.uids_with("c1"), ElementsAre("pod-2"));
}

TEST_F(StoreIndex, ErasesOnlyTheEntry) {
  make_state();
  {
    Store store = opened();
    EXPECT_TRUE(store.erase_entry(entry_of("c1", "another-pod")));
    EXPECT_THAT(*store.uids_with("c1"), SizeIs(1));
    EXPECT_TRUE(store.erase_entry(entry_of("c1", "pod-1")));
    EXPECT_THAT(*store.uids_with("c1"), IsEmpty());
    EXPECT_TRUE(store.erase_entry(entry_of("c1", "pod-1"))) << "twice is no error";
    EXPECT_TRUE(has_entry("c1")) << "until it is committed";
    EXPECT_TRUE(store.commit());
  }
  EXPECT_FALSE(has_entry("c1"));
  EXPECT_THAT(*opened().uids_with("c1"), IsEmpty());
}

TEST_F(StoreIndex, KeepsAnEntryThatIsThere) {
  make_state();
  struct stat before{};
  ASSERT_EQ(::lstat(path("containers/" + index_name("c1")).c_str(), &before), 0);
  Store store = opened();
  EXPECT_TRUE(store.put_entry(entry_of("c1", "pod-1")));
  struct stat after{};
  ASSERT_EQ(::lstat(path("containers/" + index_name("c1")).c_str(), &after), 0);
  EXPECT_EQ(after.st_ino, before.st_ino);
  EXPECT_THAT(*store.uids_with("c1"), ElementsAre("pod-1"));
}

TEST_F(StoreIndex, RefusesMoreUidsThanALinkHolds) {
  Store store = opened();
  Status done;
  int added = 0;
  for (; done && added < 1000; ++added)
    done =
        store.put_entry(entry_of("c1", "pod-with-a-uid-of-36-characters-" + std::to_string(added)));
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kTooLarge);
  EXPECT_THAT(*store.uids_with("c1"), SizeIs(added - 1));
}

TEST_F(StoreIndex, SetsAsideWhatIsNoEntry) {
  make_state();
  const std::string name = "containers/" + index_name("c1");
  ASSERT_EQ(::unlink(path(name).c_str()), 0);
  write(name, "]");
  ASSERT_EQ(::symlink("../../etc", path("containers/" + index_name("c2")).c_str()), 0);
  Store store = opened();
  EXPECT_THAT(*store.uids_with("c1"), IsEmpty());
  EXPECT_TRUE(store.put_entry(entry_of("c2", "pod-1")));
  EXPECT_THAT(*store.uids_with("c2"), ElementsAre("pod-1"));
  EXPECT_TRUE(store.dirty());
  EXPECT_THAT(store.incidents(), SizeIs(2));
  EXPECT_TRUE(has(name + ".corrupt-1"));
  EXPECT_THAT(*store.all_entries(), SizeIs(1));
}

TEST_F(StoreIndex, SetsADirectoryAside) {
  make_state();
  const std::string name = "containers/" + index_name("c1");
  ASSERT_EQ(::unlink(path(name).c_str()), 0);
  ASSERT_EQ(::mkdir(path(name).c_str(), 0700), 0);
  Store store = opened();
  EXPECT_TRUE(store.put_entry(entry_of("c1", "pod-1")));
  EXPECT_THAT(*store.uids_with("c1"), ElementsAre("pod-1"));
  EXPECT_TRUE(store.dirty());
  EXPECT_THAT(store.incidents(), SizeIs(1));
  EXPECT_TRUE(has(name + ".corrupt-1"));
}

}  // namespace
}  // namespace podqos::store
