#include <sys/stat.h>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/store/store_fixture.h"

namespace podqos::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ReadUnlocked : public StoreTest {
 protected:
  [[nodiscard]] Result<Store> unlocked() const {
    return Store::open(options_, Opening::kReadUnlocked);
  }
};

TEST_F(ReadUnlocked, FindsNothingWhereThereIsNoDirectory) {
  auto store = unlocked();
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_THAT(*store->pod_uids(), IsEmpty());
  EXPECT_FALSE(temporary_.has("state"));
}

TEST_F(ReadUnlocked, SeesATransactionInProgressWithoutWaitingForIt) {
  make_state();
  Store holder = opened();
  EXPECT_FALSE(unlocked()->dirty());
  EXPECT_TRUE(holder.put_pod(record_of("pod-2")));
  auto store = unlocked();
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_TRUE(store->dirty());
  EXPECT_EQ(store->tiers().sums.burstable.pods, 1);
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

TEST_F(ReadUnlocked, RefusesADirectoryThatOthersCanWriteTo) {
  make_state();
  ASSERT_EQ(::chmod(options_.path.c_str(), 0777), 0);
  EXPECT_EQ(unlocked().error().code, ErrorCode::kConflict);
}

TEST_F(ReadUnlocked, TellsWhichContainersMayBeInvolved) {
  EXPECT_TRUE(may_involve(options_.path, "c2")) << "without a state nothing is known";
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
