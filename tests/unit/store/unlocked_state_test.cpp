#include "common/store/unlocked_state.h"

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/store/store_fixture.h"

namespace podqos::store {
namespace {

using ::testing::HasSubstr;

class UnlockedStateTest : public StoreTest {
 protected:
  [[nodiscard]] std::optional<UnlockedState> look() const {
    auto state = UnlockedState::open(path("."));
    EXPECT_TRUE(state) << state.error().message;
    return state ? std::move(*state) : std::nullopt;
  }
};

TEST_F(UnlockedStateTest, IsNoneWhereThereIsNoDirectory) {
  EXPECT_FALSE(look());
}

TEST_F(UnlockedStateTest, HasTiersAndPods) {
  make_state();
  auto state = look();
  ASSERT_TRUE(state);
  EXPECT_FALSE(state->interrupted());
  EXPECT_EQ(state->tiers().sums.burstable.pods, 1);
  const auto pod = state->pod("pod-1");
  ASSERT_TRUE(pod);
  ASSERT_TRUE(*pod);
  EXPECT_EQ(**pod, record_of("pod-1"));
  const auto other = state->pod("pod-2");
  ASSERT_TRUE(other);
  EXPECT_FALSE(*other);
}

TEST_F(UnlockedStateTest, SeesAnEventThatIsUnderWay) {
  make_state();
  const auto before = look();
  Store event = opened();
  event.tiers().sums.burstable.pods = 2;
  ASSERT_TRUE(before && before->is_current());
  ASSERT_TRUE(event.checkpoint());
  EXPECT_FALSE(before->is_current());
  const auto meanwhile = look();
  ASSERT_TRUE(meanwhile);
  EXPECT_TRUE(meanwhile->interrupted());
  ASSERT_TRUE(event.commit());
  EXPECT_FALSE(meanwhile->is_current());
  const auto after = look();
  ASSERT_TRUE(after);
  EXPECT_FALSE(after->interrupted());
  EXPECT_EQ(after->tiers().sums.burstable.pods, 2);
  EXPECT_TRUE(after->is_current());
}

TEST_F(UnlockedStateTest, SeesThatThePathLeadsElsewhere) {
  make_state();
  const auto state = look();
  ASSERT_TRUE(state);
  std::filesystem::rename(temporary_.path("state"), temporary_.path("moved"));
  EXPECT_FALSE(state->is_current());
  make_state();
  EXPECT_FALSE(state->is_current());
}

TEST_F(UnlockedStateTest, LeavesWhatIsBrokenInItsPlace) {
  make_state();
  write("pods/pod-1.json", "{");
  const auto state = look();
  ASSERT_TRUE(state);
  const auto pod = state->pod("pod-1");
  ASSERT_FALSE(pod);
  EXPECT_EQ(pod.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(pod.error().message, HasSubstr("pods/pod-1.json"));
  EXPECT_EQ(read("pods/pod-1.json"), "{");
  write("tiers.json", "{");
  EXPECT_FALSE(UnlockedState::open(path(".")));
  EXPECT_EQ(read("tiers.json"), "{");
}

TEST_F(UnlockedStateTest, RefusesARecordOfAnotherPod) {
  make_state();
  std::filesystem::copy_file(path("pods/pod-1.json"), path("pods/pod-2.json"));
  const auto state = look();
  ASSERT_TRUE(state);
  const auto pod = state->pod("pod-2");
  ASSERT_FALSE(pod);
  EXPECT_THAT(pod.error().message, HasSubstr("holds the record of pod \"pod-1\""));
  EXPECT_FALSE(state->pod("../tiers"));
}

TEST_F(UnlockedStateTest, TellsWhichContainersItMayInvolve) {
  EXPECT_TRUE(may_involve(path("."), "c-1")) << "where there is no state nobody knows";
  make_state();
  Store event = opened();
  ASSERT_TRUE(event.put_entry(entry_of("c-1", "pod-1")));
  ASSERT_TRUE(event.checkpoint());
  EXPECT_TRUE(may_involve(path("."), "c-1"));
  EXPECT_TRUE(may_involve(path("."), "c-2")) << "the event may have been interrupted";
  ASSERT_TRUE(event.commit());
  EXPECT_TRUE(may_involve(path("."), "c-1"));
  EXPECT_FALSE(may_involve(path("."), "c-2"));
  EXPECT_FALSE(may_involve(path("."), ""));
  ASSERT_TRUE(std::filesystem::remove(path("tiers.json")));
  EXPECT_TRUE(may_involve(path("."), "c-2")) << "pods whose tiers are lost";
  std::filesystem::remove_all(path("containers"));
  EXPECT_TRUE(may_involve(path("."), "c-2")) << "an index that is lost tells of none";
}

TEST_F(UnlockedStateTest, TellsItOfWhatItHasRead) {
  make_state();
  Store event = opened();
  ASSERT_TRUE(event.put_entry(entry_of("c-1", "pod-1")));
  ASSERT_TRUE(event.commit());
  const auto state = UnlockedState::open(path("."));
  ASSERT_TRUE(state && *state);
  EXPECT_TRUE((*state)->may_involve("c-1"));
  EXPECT_FALSE((*state)->may_involve("c-2"));
  ASSERT_TRUE(event.checkpoint());
  EXPECT_TRUE((*state)->may_involve("c-2")) << "an event has begun since";
  const auto marked = UnlockedState::open(path("."));
  ASSERT_TRUE(marked && *marked);
  EXPECT_TRUE((*marked)->may_involve("c-2")) << "and has not ended";
  ASSERT_TRUE(event.commit());
  const auto ended = UnlockedState::open(path("."));
  ASSERT_TRUE(ended && *ended);
  EXPECT_FALSE((*ended)->may_involve("c-2"));
  std::filesystem::rename(path("containers"), path("gone"));
  EXPECT_TRUE((*ended)->may_involve("c-2")) << "an index that is lost tells of none";
}

}  // namespace
}  // namespace podqos::store
