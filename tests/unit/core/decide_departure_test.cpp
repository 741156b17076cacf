#include "common/core/events/decide_departure.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/pods/counting.h"
#include "tests/unit/core/byte_units.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using byte_units::kMi;
using pod_text::list;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::SizeIs;

ContainerRecord recorded(std::string name) {
  ContainerRecord out;
  out.id = name;
  out.name = std::move(name);
  out.state = ContainerState::kLive;
  return out;
}

/// Burstable pod 42, whose container "web" requests 100m and 64Mi, and is counted.
PodRecord counted_pod() {
  PodRecord record;
  record.pod =
      pod_text::pod({pod_text::container("web", list({{"cpu", "100m"}, {"memory", "64Mi"}}))});
  record.pod.uid = "42";
  record.qos_class = QosClass::kBurstable;
  record.counted_request = {.pods = 1, .cpu = MilliCpu{100}, .memory = Bytes{64 * kMi}};
  record.capped_request = record.counted_request;
  record.containers = {recorded("web")};
  return record;
}

TEST(RemoveContainer, KeepsTheResourcesOfACompletePod) {
  PodRecord record = counted_pod();
  record.complete = true;
  record.containers.push_back(recorded("log"));
  remove_container(record, 0);
  EXPECT_THAT(record.containers, ElementsAre(recorded("log")));
  EXPECT_THAT(record.pod.containers, SizeIs(1));
}

TEST(RemoveContainer, LeavesAPartialPodWhatItNeededAtMost) {
  for (const bool kubelets_own : {false, true}) {
    PodRecord record = counted_pod();
    record.kubelets_own = kubelets_own;
    remove_container(record, 0);
    EXPECT_THAT(record.containers, IsEmpty());
    EXPECT_THAT(record.pod.containers, IsEmpty());
    EXPECT_EQ(pod_requests(record.pod), list({{"cpu", "100m"}, {"memory", "64Mi"}}));
  }
}

TEST(RemoveContainer, OneThatNeverStartedLeavesNothing) {
  PodRecord record = counted_pod();
  record.containers.front().state = ContainerState::kPending;
  remove_container(record, 0);
  EXPECT_EQ(pod_requests(record.pod), ResourceList{});
}

TEST(RemoveContainer, LeavesNothingOfAnotherThatHasNotStarted) {
  PodRecord record = counted_pod();
  record.pod.containers.push_back(
      pod_text::container("bad", list({{"cpu", "8"}, {"memory", "1Gi"}})));
  record.containers.push_back(recorded("bad"));
  record.containers.back().state = ContainerState::kPending;
  remove_container(record, 0);
  EXPECT_EQ(pod_requests(record.pod), list({{"cpu", "8"}, {"memory", "1Gi"}}));
  remove_container(record, 0);
  EXPECT_EQ(pod_requests(record.pod), list({{"cpu", "100m"}, {"memory", "64Mi"}}));
}

class DecideDeparture : public ::testing::Test {
 protected:
  DecideDeparture() { settings_.release_delay_seconds = 30; }

  Departure decide(const PodRecord& record) {
    charge_was_read_ = false;
    const DepartureSnapshot snapshot{.due = due_,
                                     .has_living = has_living_,
                                     .populated = populated_,
                                     .unwritten = unwritten_,
                                     .charge =
                                         [this] {
                                           charge_was_read_ = true;
                                           return charge_;
                                         },
                                     .capacity = capacity_,
                                     .now = now_};
    return decide_departure(record, snapshot, settings_);
  }

  NodeCapacity capacity_{.memory = Bytes{1024 * kMi}, .cpu = MilliCpu{4000}};
  Settings settings_;
  bool due_ = false;
  bool has_living_ = false;
  bool populated_ = false;
  bool unwritten_ = false;
  BootSeconds now_{1000};
  ShmemCharge charge_ = ShmemCharge::kNone;
  bool charge_was_read_ = false;
};

TEST_F(DecideDeparture, APodWithALivingContainerStays) {
  has_living_ = true;
  const auto departure = decide(counted_pod());
  EXPECT_EQ(departure.outcome, PodOutcome::kStays);
  EXPECT_EQ(departure.record, counted_pod());
  EXPECT_EQ(departure.message, "");
  EXPECT_FALSE(charge_was_read_);
}

TEST_F(DecideDeparture, RequestsThatNothingBacksAnyMoreAreReturned) {
  settings_.reserve_memory_percent = 100;
  has_living_ = true;
  PodRecord record = counted_pod();
  record.containers.front().backed_memory = Bytes{16 * kMi};
  const auto departure = decide(record);
  EXPECT_EQ(departure.outcome, PodOutcome::kStays);
  EXPECT_EQ(departure.record.counted_request.memory, Bytes{16 * kMi});
}

PodRecord due_at(BootSeconds time) {
  PodRecord record = counted_pod();
  record.due = time;
  return record;
}

/// One that is not due yet stays so.
TEST_F(DecideDeparture, APodWhoseTimeHasComeIsNoLongerDue) {
  has_living_ = true;
  const PodRecord record = due_at(BootSeconds{1010});
  EXPECT_EQ(decide(record).record.due, BootSeconds{1010});
  due_ = true;
  EXPECT_EQ(decide(record).record.due, std::nullopt);
}

TEST_F(DecideDeparture, RefusedValuesAreWrittenAgain) {
  due_ = true;
  has_living_ = true;
  unwritten_ = true;
  const auto departure = decide(due_at(BootSeconds{999}));
  EXPECT_EQ(departure.outcome, PodOutcome::kRewritten);
  EXPECT_EQ(departure.record.due, std::nullopt);
}

TEST_F(DecideDeparture, AProcessThatOutlivesTheContainersKeepsThePodAndItsRequests) {
  populated_ = true;
  const auto departure = decide(counted_pod());
  EXPECT_EQ(departure.outcome, PodOutcome::kPostponed);
  EXPECT_EQ(departure.record.released_at, std::nullopt);
  EXPECT_EQ(departure.record.due, BootSeconds{1030});
  EXPECT_FALSE(charge_was_read_);
}

TEST_F(DecideDeparture, IsReleasedWithTheLastContainer) {
  const auto departure = decide(counted_pod());
  EXPECT_EQ(departure.outcome, PodOutcome::kRemoved);
  EXPECT_EQ(departure.record.released_at, BootSeconds{1000});
  EXPECT_EQ(departure.message, "released, Burstable: cpu 100m, memory 64Mi returned to the tiers");
}

TEST_F(DecideDeparture, TellsOfProcessesThatWereKilled) {
  PodRecord record = counted_pod();
  record.oom_kills = OomKills{.reported = 1};
  EXPECT_THAT(decide(record).message, EndsWith("; processes of it were OOM-killed"));
  record.oom_kills->reported = 0;
  EXPECT_THAT(decide(record).message, EndsWith("returned to the tiers"));
}

TEST_F(DecideDeparture, AReleasedPodIsReleasedOnce) {
  PodRecord record = counted_pod();
  record.released_at = BootSeconds{900};
  const auto departure = decide(record);
  EXPECT_EQ(departure.outcome, PodOutcome::kRemoved);
  EXPECT_EQ(departure.record, record);
  EXPECT_EQ(departure.message, "");
}

TEST_F(DecideDeparture, AKubeletsPodEndsWithItsContainers) {
  PodRecord record = counted_pod();
  record.kubelets_own = true;
  populated_ = true;
  const auto departure = decide(record);
  EXPECT_EQ(departure.outcome, PodOutcome::kForgotten);
  EXPECT_EQ(departure.message, "a kubelet's pod has ended, Burstable");
  EXPECT_FALSE(charge_was_read_);
}

TEST_F(DecideDeparture, TmpfsMemoryKeepsTheCgroupUntilReleaseDelayHasPassed) {
  charge_ = ShmemCharge::kSome;
  const auto departure = decide(counted_pod());
  EXPECT_EQ(departure.outcome, PodOutcome::kPostponed);
  EXPECT_EQ(departure.record.released_at, BootSeconds{1000});
  now_ = BootSeconds{1029};
  EXPECT_EQ(decide(departure.record).outcome, PodOutcome::kPostponed);
  EXPECT_TRUE(charge_was_read_);
  now_ = BootSeconds{1030};
  EXPECT_EQ(decide(departure.record).outcome, PodOutcome::kRemoved);
  EXPECT_FALSE(charge_was_read_);
}

TEST_F(DecideDeparture, ReleaseDelayAtMostKeepsACgroup) {
  struct DelayCase {
    std::int64_t release_delay;
    std::int64_t some;       ///< when tmpfs memory is looked for again
    std::int64_t uncertain;  ///< when memory.stat is read again; the kernel flushes it every 2 s
  };
  // The default, a short one, and one that must not become a loop.
  for (const auto& [delay, some, uncertain] :
       std::vector<DelayCase>{{30, 1030, 1003}, {2, 1002, 1002}, {0, 1001, 1001}}) {
    SCOPED_TRACE(delay);
    settings_.release_delay_seconds = delay;
    // A delay of 0 asks for no charge, except of a clock that was set back.
    PodRecord record = counted_pod();
    record.released_at = BootSeconds{1001};
    charge_ = ShmemCharge::kSome;
    EXPECT_EQ(decide(record).record.due, BootSeconds{some});
    charge_ = ShmemCharge::kUncertain;
    EXPECT_EQ(decide(record).record.due, BootSeconds{uncertain});
    EXPECT_EQ(retry_at(BootSeconds{1000}, settings_), BootSeconds{some});
  }
}

constexpr Bytes kPage{4096};

constexpr auto kNone = ShmemCharge::kNone;
constexpr auto kUncertain = ShmemCharge::kUncertain;
constexpr auto kSome = ShmemCharge::kSome;

// mm/memcontrol.c: MEMCG_CHARGE_BATCH is 64 pages.
TEST(ShmemChargeTest, IsUncertainFromTheFirstByteBeyondTwoBatches) {
  const Bytes batches{std::int64_t{2} * 64 * 4096};
  EXPECT_EQ(shmem_charge({.usage = batches, .counted = {}, .shmem = {}}, 1, kPage), kNone);
  EXPECT_EQ(shmem_charge({.usage = batches + Bytes{1}, .counted = {}, .shmem = {}}, 1, kPage),
            kUncertain);
  EXPECT_EQ(shmem_charge({.usage = {}, .counted = {}, .shmem = Bytes{1}}, 1, kPage), kSome);
}

TEST(ShmemChargeTest, TrustsTheStatisticsWithinTheirBounds) {
  struct Charge {
    const char* name;
    std::int64_t usage;
    std::int64_t counted;
    std::int64_t shmem;
    std::int64_t processors;
    ShmemCharge held;
  };
  for (const auto& row : std::vector<Charge>{
           {"Nothing", 0, 0, 0, 1, kNone},
           {"Counted", 8, 8, 8, 1, kSome},
           {"CountedBesideOthers", 100, 100, 1, 128, kSome},
           {"PageCacheOnly", 100, 100, 0, 1, kNone},
           // As measured: 8 MiB written to tmpfs, none of it in memory.stat.
           {"AllUncounted", 8, 0, 0, 2, kUncertain},
           // 64 pages of 4 KiB in the statistics and 64 in advance, of each.
           {"AsUncountedAsMayBe", 101, 100, 0, 2, kNone},
           {"MoreUncounted", 102, 100, 0, 2, kUncertain},
           {"OnALargeMachine", 164, 100, 0, 128, kNone},
           {"CountedTooMuch", 10, 500, 0, 2, kUncertain},
           {"CountedALittleTooMuch", 99, 100, 0, 2, kNone},
       }) {
    SCOPED_TRACE(row.name);
    const MemoryCharge charge{.usage = Bytes{row.usage * kMi},
                              .counted = Bytes{row.counted * kMi},
                              .shmem = Bytes{row.shmem * kMi}};
    EXPECT_EQ(shmem_charge(charge, row.processors, kPage), row.held);
  }
}

}  // namespace
}  // namespace podqos::core
