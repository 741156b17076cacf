#include "common/core/departure.h"

#include <cstdint>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/byte_units.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using byte_units::kMi;
using pod_text::list;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

struct EndingCase {
  const char* name;
  EndingSnapshot snapshot;
  Ending ending;
};

class DecideEnding : public TestWithParam<EndingCase> {};

TEST_P(DecideEnding, FollowsFromItsProcesses) {
  EXPECT_EQ(decide_ending(GetParam().snapshot), GetParam().ending);
}

INSTANTIATE_TEST_SUITE_P(
    All, DecideEnding,
    ValuesIn(std::vector<EndingCase>{
        {"CreationFailed", {.never_started = true, .init_lives = true}, Ending::kDone},
        {"CgroupIsGone", {.cgroup_exists = false}, Ending::kDone},
        {"InitRuns", {.init_lives = true}, Ending::kStillAlive},
        {"InitWasKilled", {.init_lives = true, .killed = true}, Ending::kEnding},
        {"OthersWereKilled", {.killed = true}, Ending::kEnding},
        {"OthersMayStay", {}, Ending::kDone},
    }),
    [](const TestParamInfo<EndingCase>& row) { return row.param.name; });

TEST(IsRemoved, AKilledContainerOnlyOnceTheCallerWaitsNoLonger) {
  EXPECT_TRUE(is_removed(Ending::kDone, OnEnding::kLeave));
  EXPECT_FALSE(is_removed(Ending::kEnding, OnEnding::kLeave));
  EXPECT_TRUE(is_removed(Ending::kEnding, OnEnding::kDrop));
  EXPECT_FALSE(is_removed(Ending::kStillAlive, OnEnding::kDrop));
}

ContainerRecord recorded(std::string name) {
  ContainerRecord out;
  out.id = name;
  out.name = std::move(name);
  return out;
}

/// Burstable pod 42, whose container "web" requests 100m and 64Mi, and is counted.
PodRecord counted_pod() {
  PodRecord record;
  record.pod =
      pod_text::pod({pod_text::container("web", list({{"cpu", "100m"}, {"memory", "64Mi"}}))});
  record.pod.uid = "42";
  record.qos_class = QosClass::kBurstable;
  record.granted = {.pods = 1, .cpu = MilliCpu{100}, .memory = Bytes{64 * kMi}};
  record.containers = {recorded("web")};
  return record;
}

TEST(RemoveContainer, KeepsTheRequestsOfPodqossOwnPod) {
  PodRecord record = counted_pod();
  record.containers.push_back(recorded("log"));
  remove_container(record, 0, false);
  EXPECT_THAT(record.containers, ElementsAre(recorded("log")));
  EXPECT_THAT(record.pod.containers, SizeIs(1));
}

TEST(RemoveContainer, TakesTheRequestsOutOfAKubeletsPod) {
  PodRecord record = counted_pod();
  record.adopted = true;
  remove_container(record, 0, false);
  EXPECT_THAT(record.containers, IsEmpty());
  EXPECT_THAT(record.pod.containers, IsEmpty());
}

TEST(RemoveContainer, AReplacedOneLeavesItsRequestsToTheNext) {
  PodRecord record = counted_pod();
  record.adopted = true;
  remove_container(record, 0, true);
  EXPECT_THAT(record.containers, IsEmpty());
  EXPECT_THAT(record.pod.containers, SizeIs(1));
}

class DecideDeparture : public ::testing::Test {
 protected:
  DecideDeparture() {
    sums_.burstable = {.pods = 2, .cpu = MilliCpu{300}, .memory = Bytes{100 * kMi}};
    settings_.release_delay_seconds = 30;
  }

  [[nodiscard]] DepartureSnapshot snapshot() const {
    return {.sums = sums_, .capacity = capacity_, .now = UnixSeconds{1000}};
  }

  TierSums sums_;
  NodeCapacity capacity_{.memory = Bytes{1024 * kMi}, .cpu = MilliCpu{4000}};
  Settings settings_;
};

TEST_F(DecideDeparture, APodWithALivingContainerStays) {
  auto snapshot = this->snapshot();
  snapshot.has_living = true;
  const auto departure = decide_departure(counted_pod(), snapshot, settings_);
  EXPECT_EQ(departure.outcome, PodOutcome::kStays);
  EXPECT_EQ(departure.record, counted_pod());
  EXPECT_EQ(departure.sums, sums_);
  EXPECT_EQ(departure.message, "");
}

TEST_F(DecideDeparture, RequestsThatNothingBacksAnyMoreAreReturned) {
  settings_.reserve_memory_percent = 100;
  auto snapshot = this->snapshot();
  snapshot.has_living = true;
  PodRecord record = counted_pod();
  record.containers.front().backed_memory = Bytes{16 * kMi};
  const auto departure = decide_departure(record, snapshot, settings_);
  EXPECT_EQ(departure.outcome, PodOutcome::kStays);
  EXPECT_EQ(departure.record.granted.memory, Bytes{16 * kMi});
  EXPECT_EQ(departure.sums.burstable,
            (TierSum{.pods = 2, .cpu = MilliCpu{300}, .memory = Bytes{52 * kMi}}));
}

TEST_F(DecideDeparture, RefusedValuesAreWrittenAgain) {
  auto snapshot = this->snapshot();
  snapshot.has_living = true;
  snapshot.unwritten = true;
  const auto departure = decide_departure(counted_pod(), snapshot, settings_);
  EXPECT_EQ(departure.outcome, PodOutcome::kRewritten);
  EXPECT_EQ(departure.sums, sums_);
}

TEST_F(DecideDeparture, AProcessThatOutlivesTheContainersRetainsThePodAndItsRequests) {
  auto snapshot = this->snapshot();
  snapshot.populated = true;
  const auto departure = decide_departure(counted_pod(), snapshot, settings_);
  EXPECT_EQ(departure.outcome, PodOutcome::kRetained);
  EXPECT_EQ(departure.until, UnixSeconds{1030});
  EXPECT_EQ(departure.record.released_at, std::nullopt);
  EXPECT_EQ(departure.sums, sums_);
}

TEST_F(DecideDeparture, RequestsLeaveTheSumsWithTheLastContainer) {
  const auto departure = decide_departure(counted_pod(), snapshot(), settings_);
  EXPECT_EQ(departure.outcome, PodOutcome::kReleased);
  EXPECT_EQ(departure.record.released_at, UnixSeconds{1000});
  EXPECT_EQ(departure.sums.burstable,
            (TierSum{.pods = 1, .cpu = MilliCpu{200}, .memory = Bytes{36 * kMi}}));
  EXPECT_EQ(departure.message,
            "pod 42 released: Burstable, cpu 100m, memory 67108864 returned to the tiers");
}

TEST_F(DecideDeparture, AReleasedPodLeavesTheSumsOnce) {
  PodRecord record = counted_pod();
  record.released_at = UnixSeconds{900};
  const auto departure = decide_departure(record, snapshot(), settings_);
  EXPECT_EQ(departure.outcome, PodOutcome::kReleased);
  EXPECT_EQ(departure.record, record);
  EXPECT_EQ(departure.sums, sums_);
  EXPECT_EQ(departure.message, "");
}

TEST_F(DecideDeparture, AKubeletsPodEndsWithItsContainers) {
  PodRecord record = counted_pod();
  record.adopted = true;
  sums_.adopted = {.pods = 1, .cpu = MilliCpu{100}, .memory = Bytes{64 * kMi}};
  auto snapshot = this->snapshot();
  snapshot.populated = true;
  const auto departure = decide_departure(record, snapshot, settings_);
  EXPECT_EQ(departure.outcome, PodOutcome::kReleased);
  EXPECT_EQ(departure.sums.adopted, TierSum{});
  EXPECT_EQ(departure.message, "pod 42 of a kubelet has ended: Burstable");
}

TEST_F(DecideDeparture, ItsChargeCountsUntilReleaseDelayHasPassed) {
  PodRecord record = counted_pod();
  EXPECT_TRUE(depends_on_charge(record, 29, settings_));
  EXPECT_FALSE(depends_on_charge(record, 30, settings_));
  record.adopted = true;
  EXPECT_FALSE(depends_on_charge(record, 0, settings_));
}

TEST(DecideRemoval, TmpfsMemoryRetainsTheCgroup) {
  EXPECT_EQ(decide_removal(counted_pod(), ShmemCharge::kNone), Removal::kRemove);
  EXPECT_EQ(decide_removal(counted_pod(), ShmemCharge::kSome), Removal::kRetain);
  EXPECT_EQ(decide_removal(counted_pod(), ShmemCharge::kUncertain), Removal::kRetain);
}

TEST(DecideRemoval, TheCgroupOfAKubeletsPodIsTheKubelets) {
  PodRecord record = counted_pod();
  record.adopted = true;
  EXPECT_EQ(decide_removal(record, ShmemCharge::kNone), Removal::kForget);
}

struct DelayCase {
  const char* name;
  std::int64_t release_delay;
  std::int64_t some;       ///< when tmpfs memory is looked for again
  std::int64_t uncertain;  ///< when memory.stat is read again; the kernel flushes it every 2 s
};

class ReadAgainAt : public TestWithParam<DelayCase> {};

TEST_P(ReadAgainAt, ComesBackAfterReleaseDelayAtMost) {
  Settings settings;
  settings.release_delay_seconds = GetParam().release_delay;
  const UnixSeconds now{1000};
  EXPECT_EQ(read_again_at(ShmemCharge::kSome, now, settings), UnixSeconds{GetParam().some});
  EXPECT_EQ(read_again_at(ShmemCharge::kUncertain, now, settings),
            UnixSeconds{GetParam().uncertain});
  EXPECT_EQ(retry_at(now, settings), UnixSeconds{GetParam().some});
}

INSTANTIATE_TEST_SUITE_P(All, ReadAgainAt,
                         ValuesIn(std::vector<DelayCase>{
                             {"Default", 30, 1030, 1003},
                             {"Short", 2, 1002, 1002},
                             {"NotInALoop", 0, 1001, 1001},
                         }),
                         [](const TestParamInfo<DelayCase>& row) { return row.param.name; });

}  // namespace
}  // namespace podqos::core
