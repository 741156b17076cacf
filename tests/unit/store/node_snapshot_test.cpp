#include "common/store/node_snapshot.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/codec/record_json.h"
#include "tests/unit/store/store_fixture.h"

namespace podqos::store {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SnapshotReaderTest : public StoreTest {
 protected:
  [[nodiscard]] std::optional<NodeSnapshot> read_state() {
    auto state = snapshot_reader_.read();
    EXPECT_TRUE(state) << state.error().message;
    return state ? std::move(*state) : std::nullopt;
  }
  void put(const core::PodRecord& record) const {
    Store store = opened();
    EXPECT_TRUE(store.put_pod(record));
    EXPECT_TRUE(store.commit());
  }

  SnapshotReader snapshot_reader_{path(".")};
};

TEST_F(SnapshotReaderTest, SeesNothingWhereThereIsNoState) {
  EXPECT_FALSE(read_state());
}

TEST_F(SnapshotReaderTest, SeesPodsAndSums) {
  make_state();
  const auto state = read_state();
  ASSERT_TRUE(state);
  EXPECT_FALSE(state->interrupted);
  EXPECT_EQ(state->unreadable, 0U);
  EXPECT_EQ(state->tiers.sums.burstable.pods, 1);
  EXPECT_THAT(state->pods,
              ElementsAre(PodSnapshot{
                  .cgroup = "/kubepods/burstable/podpod-1",
                  .qos_class = core::QosClass::kBurstable,
                  .adopted = false,
                  .released = false,
                  .requests = {.pods = 1, .cpu = MilliCpu{250}, .memory = Bytes{1 << 20}}}));
}

TEST_F(SnapshotReaderTest, CountsWhatWasGrantedAndOfAdoptedPodsWhatIsClaimed) {
  core::PodRecord own = record_of("a");
  own.granted.cpu = MilliCpu{100};
  core::PodRecord adopted = record_of("b");
  adopted.adopted = true;
  adopted.granted = {};
  put(own);
  put(adopted);
  const auto state = read_state();
  ASSERT_TRUE(state);
  ASSERT_EQ(state->pods.size(), 2U);
  EXPECT_EQ(state->pods[0].requests.cpu, MilliCpu{100});
  EXPECT_TRUE(state->pods[1].adopted);
  EXPECT_EQ(state->pods[1].requests.cpu, MilliCpu{250});
}

TEST_F(SnapshotReaderTest, DoesNotWaitForTheLock) {
  make_state();
  Store holder = opened();
  EXPECT_TRUE(holder.begin());
  const auto state = read_state();
  ASSERT_TRUE(state);
  EXPECT_TRUE(state->interrupted);
  EXPECT_EQ(state->pods.size(), 1U);
}

TEST_F(SnapshotReaderTest, FollowsWhatChanges) {
  make_state();
  ASSERT_TRUE(read_state());
  core::PodRecord record = record_of("pod-1");
  record.released_at = UnixSeconds{7};
  put(record);
  put(record_of("pod-2"));
  const auto both = read_state();
  ASSERT_TRUE(both);
  EXPECT_THAT(both->pods, ElementsAre(Field(&PodSnapshot::released, true),
                                      Field(&PodSnapshot::released, false)));
  Store store = opened();
  EXPECT_TRUE(store.erase_pod("pod-1"));
  EXPECT_TRUE(store.erase_pod("pod-2"));
  EXPECT_THAT(read_state()->pods, IsEmpty());
}

TEST_F(SnapshotReaderTest, ReadsARecordOnce) {
  make_state();
  ASSERT_EQ(read_state()->pods.size(), 1U);
  // The same file with other bytes, as no event leaves it.
  struct stat before{};
  ASSERT_EQ(::stat(path("pods/pod-1.json").c_str(), &before), 0);
  write("pods/pod-1.json", "damaged");
  const timespec times[] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, path("pods/pod-1.json").c_str(), times, 0), 0);
  EXPECT_EQ(read_state()->pods.size(), 1U);
}

TEST_F(SnapshotReaderTest, ReadsSomeAtATime) {
  make_state();
  for (int i = 0; i < 600; ++i) {
    const core::PodRecord record = record_of("many-" + std::to_string(i));
    write("pods/" + record.pod.uid + ".json", codec::format_pod_record(record));
  }
  const auto first = snapshot_reader_.read();
  ASSERT_FALSE(first);
  EXPECT_EQ(first.error().code, ErrorCode::kBusy);
  EXPECT_THAT(first.error().message, HasSubstr(": 89 new records are left for the next read"));
  EXPECT_EQ(read_state()->pods.size(), 601U);
  write("pods/one-more.json", codec::format_pod_record(record_of("one-more")));
  EXPECT_EQ(read_state()->pods.size(), 602U);
}

TEST_F(SnapshotReaderTest, LeavesDamagedFilesWhereTheyAre) {
  make_state();
  write("pods/pod-2.json", "{");
  write("pods/.pod-3.json.tmp", "{");
  const auto state = read_state();
  ASSERT_TRUE(state);
  EXPECT_EQ(state->pods.size(), 1U);
  EXPECT_EQ(state->unreadable, 1U);
  EXPECT_TRUE(has("pods/pod-2.json"));
  write("tiers.json", "{");
  const auto failed = snapshot_reader_.read();
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("tiers.json"));
  EXPECT_EQ(read("tiers.json"), "{");
}

TEST_F(SnapshotReaderTest, RefusesADirectoryThatOthersCanWriteTo) {
  make_state();
  ASSERT_EQ(::chmod(path(".").c_str(), 0777), 0);
  EXPECT_EQ(snapshot_reader_.read().error().code, ErrorCode::kConflict);
}

}  // namespace
}  // namespace podqos::store
