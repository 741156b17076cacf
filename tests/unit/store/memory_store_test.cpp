#include "common/store/memory_store.h"

#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/codec/record_json.h"
#include "common/store/state_copy.h"
#include "tests/unit/store/store_fixture.h"

namespace podqos::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;

Status allow(const MemoryStore::Change& /*change*/) {
  return {};
}

/// The same calls on the records of a state directory and on those in memory.
class EachStore : public StoreTest, public ::testing::WithParamInterface<bool> {
 protected:
  /// Opens the records as the next transaction finds them.
  std::unique_ptr<RecordStore> next() {
    if (GetParam()) return std::make_unique<MemoryStore>(records_, allow);
    return std::make_unique<Store>(opened());
  }

  StoredRecords records_;
};

TEST_P(EachStore, KeepsWhatATransactionHasPut) {
  auto store = next();
  EXPECT_FALSE(store->dirty());
  ASSERT_TRUE(store->put_entry(entry_of("c1", "pod-1")));
  ASSERT_TRUE(store->put_entry(entry_of("c1", "pod-2")));
  ASSERT_TRUE(store->put_pod(record_of("pod-1")));
  ASSERT_TRUE(store->put_pod(record_of("pod-2")));
  ASSERT_TRUE(store->erase_pod("pod-2"));
  ASSERT_TRUE(store->erase_entry(entry_of("c1", "pod-2")));
  store->tiers().trees = {{.kubepods = "/kubepods"}};
  ASSERT_TRUE(store->commit());
  store.reset();

  store = next();
  EXPECT_FALSE(store->dirty());
  EXPECT_EQ(store->tiers().trees.at(0).kubepods, "/kubepods");
  EXPECT_EQ(*store->pod("pod-1"), record_of("pod-1"));
  EXPECT_EQ(*store->pod("pod-2"), std::nullopt);
  EXPECT_THAT(*store->pod_uids(), ElementsAre("pod-1"));
  EXPECT_THAT(*store->uids_with("c1"), ElementsAre("pod-1"));
  EXPECT_THAT(*store->all_entries(), ElementsAre(entry_of("c1", "pod-1")));
}

TEST_P(EachStore, IsDirtyAfterATransactionThatWasNotCommitted) {
  auto store = next();
  ASSERT_TRUE(store->put_pod(record_of("pod-1")));
  store->tiers().trees = {{.kubepods = "/kubepods"}};
  store.reset();
  store = next();
  EXPECT_TRUE(store->dirty());
  EXPECT_THAT(store->tiers().trees, IsEmpty());
  EXPECT_EQ(*store->pod("pod-1"), record_of("pod-1"));
}

TEST_P(EachStore, KeepsTheMarkUntilTheSumsAreRecomputed) {
  auto store = next();
  ASSERT_TRUE(store->begin());
  store.reset();
  store = next();
  ASSERT_TRUE(store->put_pod(record_of("pod-1")));
  ASSERT_TRUE(store->commit());
  EXPECT_TRUE(store->dirty());
  store.reset();
  store = next();
  EXPECT_TRUE(store->dirty());
  store->recomputed();
  EXPECT_FALSE(store->dirty());
  ASSERT_TRUE(store->commit());
  store.reset();
  EXPECT_FALSE(next()->dirty());
}

TEST_P(EachStore, KeepsTheMarkWhereItIsToldTo) {
  auto store = next();
  ASSERT_TRUE(store->begin());
  store->keep_mark();
  ASSERT_TRUE(store->commit());
  store.reset();
  EXPECT_TRUE(next()->dirty());
}

TEST_P(EachStore, WritesTheTiersOfACheckpoint) {
  auto store = next();
  store->tiers().trees = {{.kubepods = "/kubepods"}};
  ASSERT_TRUE(store->checkpoint());
  store.reset();
  store = next();
  EXPECT_TRUE(store->dirty());
  EXPECT_EQ(store->tiers().trees.at(0).kubepods, "/kubepods");
}

TEST_P(EachStore, RefusesWhatCannotBeAFileName) {
  const auto store = next();
  EXPECT_EQ(store->pod("a/b").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(store->put_pod(record_of("..")).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(store->erase_pod("").error().code, ErrorCode::kInvalidArgument);
}

TEST_P(EachStore, RefusesARecordThatCouldNotBeReadBack) {
  const auto store = next();
  core::PodRecord large = record_of("pod-1");
  large.sandbox_id = std::string(codec::kMaxRecordSize, 'a');
  const auto put = store->put_pod(large);
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, ErrorCode::kTooLarge);
  EXPECT_EQ(*store->pod("pod-1"), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Stores, EachStore, ::testing::Bool(), [](const auto& row) {
  return row.param ? std::string{"Memory"} : std::string{"Directory"};
});

TEST(MemoryStore, MakesNoChangeThatIsRefused) {
  StoredRecords records;
  int allowed = 1;
  MemoryStore store{records, [&](const MemoryStore::Change& /*change*/) -> Status {
                      if (allowed-- > 0) return {};
                      return fail(ErrorCode::kIo, "refused");
                    }};
  ASSERT_TRUE(store.begin());
  EXPECT_EQ(store.put_pod(record_of("pod-1")).error().message, "refused");
  EXPECT_THAT(records.pods, IsEmpty());
  EXPECT_FALSE(store.commit());
  EXPECT_TRUE(records.dirty);
}

class CopyState : public StoreTest {};

TEST_F(CopyState, HoldsWhatTheDirectoryHolds) {
  make_state();
  const auto copy = copy_state(options_);
  ASSERT_TRUE(copy) << copy.error().message;
  ASSERT_TRUE(*copy);
  const StoredRecords& records = (*copy)->records;
  EXPECT_FALSE(records.dirty);
  EXPECT_EQ(records.tiers.sums.burstable.pods, 1);
  EXPECT_THAT(records.pods, ElementsAre(Key("pod-1")));
  EXPECT_EQ(records.pods.at("pod-1"), codec::format_pod_record(record_of("pod-1")));
  EXPECT_THAT(records.index, ElementsAre(entry_of("c1", "pod-1")));
  EXPECT_THAT(records.incidents, IsEmpty());
  EXPECT_EQ(open().error().code, ErrorCode::kTimeout) << "the copy holds the lock";
}

TEST_F(CopyState, IsNoneWithoutADirectoryAndMakesNone) {
  const auto copy = copy_state(options_);
  ASSERT_TRUE(copy);
  EXPECT_FALSE(*copy);
  EXPECT_FALSE(temporary_.has("state"));
}

TEST_F(CopyState, NamesWhatIsCorruptAndLeavesIt) {
  make_state();
  write("tiers.json", "{");
  write("pods/pod-2.json", "{");
  const auto copy = copy_state(options_);
  ASSERT_TRUE(copy) << copy.error().message;
  StoredRecords records = (*copy)->records;
  EXPECT_TRUE(records.dirty);
  EXPECT_THAT(records.incidents, ElementsAre(HasSubstr("state/tiers.json is corrupt: ")));
  MemoryStore store{records, allow};
  EXPECT_EQ(*store.pod("pod-2"), std::nullopt);
  EXPECT_THAT(store.incidents().back(), HasSubstr("record of pod pod-2 is corrupt"));
  EXPECT_EQ(read("tiers.json"), "{");
  EXPECT_EQ(read("pods/pod-2.json"), "{");
}

TEST_F(CopyState, RefusesTiersOfANewerVersion) {
  make_state();
  write("tiers.json", R"({"version":99})");
  const auto copy = copy_state(options_);
  ASSERT_FALSE(copy);
  EXPECT_EQ(copy.error().code, ErrorCode::kUnsupported);
}

class ReadState : public StoreTest {};

TEST_F(ReadState, IsNoneWhereThereIsNoDirectory) {
  const auto state = read_state(options_.path);
  ASSERT_TRUE(state);
  EXPECT_FALSE(*state);
}

TEST_F(ReadState, SeesATransactionInProgressWithoutWaitingForIt) {
  make_state();
  Store holder = opened();
  EXPECT_FALSE((*read_state(options_.path))->dirty);
  EXPECT_TRUE(holder.put_pod(record_of("pod-2")));
  const auto state = read_state(options_.path);
  ASSERT_TRUE(state && *state);
  EXPECT_TRUE((*state)->dirty);
  EXPECT_EQ((*state)->tiers.sums.burstable.pods, 1);
  EXPECT_THAT((*state)->pods, ElementsAre(Key("pod-1"), Key("pod-2")));
}

TEST_F(ReadState, CountsRecordsThatCannotBeRead) {
  make_state();
  std::filesystem::create_directory(path("pods/pod-2.json"));
  const auto state = read_state(options_.path);
  ASSERT_TRUE(state && *state);
  EXPECT_EQ((*state)->unreadable, 1U);
  EXPECT_THAT((*state)->pods, ElementsAre(Key("pod-1")));
  EXPECT_FALSE(copy_state(options_)) << "what would be done about it is not known";
}

TEST_F(ReadState, RefusesADirectoryThatOthersCanWriteTo) {
  make_state();
  ASSERT_EQ(::chmod(options_.path.c_str(), 0777), 0);
  EXPECT_EQ(read_state(options_.path).error().code, ErrorCode::kConflict);
}

TEST_F(ReadState, TellsWhichContainersMayBeInvolved) {
  EXPECT_TRUE(may_involve(options_.path, "c2")) << "where there is no state nothing is known";
  make_state();
  Store event = opened();
  EXPECT_TRUE(may_involve(options_.path, "c1"));
  EXPECT_FALSE(may_involve(options_.path, "c2"));
  EXPECT_FALSE(may_involve(options_.path, ""));
  ASSERT_TRUE(event.begin());
  EXPECT_TRUE(may_involve(options_.path, "c2")) << "the transaction may have been interrupted";
  ASSERT_TRUE(event.commit());
  EXPECT_FALSE(may_involve(options_.path, "c2"));
  ASSERT_TRUE(std::filesystem::remove(path("tiers.json")));
  EXPECT_TRUE(may_involve(options_.path, "c2")) << "pods whose tiers are lost";
  std::filesystem::remove_all(path("containers"));
  EXPECT_TRUE(may_involve(options_.path, "c2")) << "an index that is lost tells of none";
}

}  // namespace
}  // namespace podqos::store
