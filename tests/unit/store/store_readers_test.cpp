#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/store/dry_run_files.h"
#include "common/store/state_files.h"
#include "tests/unit/store/store_fixture.h"

namespace podqos::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class DryRun : public StoreTest {
 protected:
  /// A store that changes nothing.
  Result<Store> dry() {
    auto directory = StateDirectory::open(options_, Opening::kRead);
    std::unique_ptr<StateFiles> files;
    if (directory) files = std::make_unique<StateDirectory>(std::move(*directory));
    return Store::over(std::make_unique<DryRunFiles>(std::move(files), &plan_));
  }

  std::vector<std::string> plan_;
};

TEST_F(DryRun, KeepsChangesInMemoryAndTellsThem) {
  make_state();
  const std::string node = read("node.json");
  const std::string rows = read("rows");
  {
    auto store = dry();
    ASSERT_TRUE(store) << store.error().message;
    EXPECT_EQ(store->node().sums.burstable.pods, 1);
    EXPECT_EQ(*store->pod("pod-1"), record_of("pod-1"));
    EXPECT_EQ(open().error().code, ErrorCode::kTimeout) << "it holds the lock";

    ASSERT_TRUE(store->put_pod(record_of("pod-1")));
    ASSERT_TRUE(store->put_pod(record_of("pod-2")));
    ASSERT_TRUE(store->erase_pod("pod-1"));
    ASSERT_TRUE(store->erase_pod("pod-3"));
    ASSERT_TRUE(store->put_entry(entry_of("c1", "pod-2")));
    ASSERT_TRUE(store->erase_entry(entry_of("c1", "pod-1")));
    ASSERT_TRUE(store->put_entry(entry_of("c2", "pod-2")));
    store->node().trees = {{.kubepods = "/kubepods"}};
    ASSERT_TRUE(store->commit());
    EXPECT_EQ(*store->pod("pod-1"), std::nullopt);
    EXPECT_EQ(*store->pod("pod-2"), record_of("pod-2"));
    EXPECT_THAT(*store->pod_uids(), ElementsAre("pod-2"));
    EXPECT_THAT(*store->uids_with("c1"), ElementsAre("pod-2"));
    EXPECT_THAT(*store->all_entries(),
                testing::UnorderedElementsAre(entry_of("c1", "pod-2"), entry_of("c2", "pod-2")));
  }
  EXPECT_THAT(plan_,
              ElementsAre("save   record of pod pod-2", "erase  record of pod pod-1",
                          "save   index entry of pod pod-2", "save   index entry of pod pod-2",
                          "erase  index entry of pod pod-1"));
  EXPECT_EQ(read("node.json"), node);
  EXPECT_EQ(read("rows"), rows);
  EXPECT_FALSE(has("pods/pod-2.json"));
  EXPECT_EQ(*opened().pod("pod-1"), record_of("pod-1"));
  EXPECT_THAT(*opened().uids_with("c1"), ElementsAre("pod-1"));
}

TEST_F(DryRun, MakesNoDirectory) {
  auto store = dry();
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_FALSE(store->dirty());
  EXPECT_THAT(*store->pod_uids(), IsEmpty());
  ASSERT_TRUE(store->put_pod(record_of("pod-1")));
  EXPECT_THAT(*store->pod_uids(), ElementsAre("pod-1"));
  EXPECT_FALSE(temporary_.has("state"));
}

TEST_F(DryRun, NamesWhatIsCorruptAndLeavesIt) {
  make_state();
  write("node.json", "{");
  write("pods/pod-2.json", "{");
  write("pods/.pod-1.json.podqos-tmp", "half");
  write("containers/" + index_name("c2"), "]");
  std::filesystem::create_symlink("pod-1", path("containers/." + index_name("c1") + ".podqos-tmp"));
  auto store = dry();
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_TRUE(store->dirty());
  EXPECT_EQ(*store->pod("pod-2"), std::nullopt);
  EXPECT_THAT(*store->pod_uids(), ElementsAre("pod-1"));
  EXPECT_THAT(*store->uids_with("c2"), IsEmpty());
  EXPECT_TRUE(store->all_entries());
  EXPECT_THAT(store->incidents(), ElementsAre(HasSubstr("state/node.json is corrupt: "),
                                              HasSubstr("state/pods/pod-2.json is corrupt: "),
                                              HasSubstr(" is corrupt: not a symbolic link")));
  EXPECT_THAT(plan_, ElementsAre("erase  record of pod pod-2"));
  EXPECT_EQ(read("node.json"), "{");
  EXPECT_EQ(read("pods/pod-2.json"), "{");
  EXPECT_TRUE(has("pods/.pod-1.json.podqos-tmp"));
}

TEST_F(DryRun, GivesUpTheLockBeforeRecordsAreParsed) {
  make_state();
  auto reader = Store::open(options_, Opening::kRead);
  ASSERT_TRUE(reader) << reader.error().message;
  ASSERT_TRUE(reader->unlock());
  {
    Store writer = opened();
    EXPECT_TRUE(writer.erase_pod("pod-1"));
    EXPECT_TRUE(writer.put_pod(record_of("pod-2")));
    EXPECT_TRUE(writer.commit());
  }
  EXPECT_THAT(*reader->pod_uids(), ElementsAre("pod-1"));
  EXPECT_EQ(*reader->pod("pod-1"), record_of("pod-1")) << "as it was under the lock";
}

class ReadUnlocked : public StoreTest {
 protected:
  [[nodiscard]] Result<Store> unlocked() const {
    return Store::open(options_, Opening::kReadUnlocked);
  }
};

TEST_F(ReadUnlocked, SeesATransactionInProgressWithoutWaitingForIt) {
  make_state();
  Store holder = opened();
  EXPECT_FALSE(unlocked()->is_marked());
  EXPECT_TRUE(holder.put_pod(record_of("pod-2")));
  auto store = unlocked();
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_TRUE(store->is_marked());
  EXPECT_FALSE(store->dirty());
  EXPECT_EQ(store->node().sums.burstable.pods, 1);
  EXPECT_THAT(*store->pod_uids(), ElementsAre("pod-1", "pod-2"));
}

TEST_F(ReadUnlocked, TellsRecordsThatCannotBeRead) {
  make_state();
  std::filesystem::create_directory(path("pods/pod-2.json"));
  auto store = unlocked();
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_THAT(store->pod("pod-2").error().message, HasSubstr("pods/pod-2.json"));
  EXPECT_EQ(*store->pod("pod-1"), record_of("pod-1"));
}

TEST_F(ReadUnlocked, TellsWhichContainersMayBeInvolved) {
  EXPECT_TRUE(may_involve(options_.path, "c2")) << "without a state nothing is known";
  make_state();
  EXPECT_TRUE(may_involve(options_.path, "c1"));
  EXPECT_FALSE(may_involve(options_.path, "c2"));
  EXPECT_FALSE(may_involve(options_.path, ""));
  ASSERT_TRUE(std::filesystem::remove(path("rows")));
  EXPECT_TRUE(may_involve(options_.path, "c2")) << "a state whose rows are lost";
  std::filesystem::remove_all(path("containers"));
  EXPECT_TRUE(may_involve(options_.path, "c2")) << "an index that is lost tells of none";
}

}  // namespace
}  // namespace podqos::store
