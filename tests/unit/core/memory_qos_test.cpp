// Memory QoS: what containers, pods and tiers get, and what becomes of those that run.
// tests/unit/codec/pods_vectors_test.cpp has the values of Kubernetes' own code.
#include "common/core/kubernetes/memory_qos.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/core/events/cgroup_write.h"
#include "common/core/events/container_memory.h"
#include "common/core/pods/pod_values.h"

namespace podqos::core {
namespace {

constexpr std::int64_t kMib = std::int64_t{1} << 20U;
constexpr Bytes kPage4K{4096};
constexpr CgroupLayout kV2Layout{.cpu = CgroupVersion::kV2, .memory = CgroupVersion::kV2};
constexpr MemoryQosParams kTiered{.reserves = true,
                                  .throttling_thousandths = 900,
                                  .allocatable = Bytes{1000 * kMib},
                                  .page_size = kPage4K};

Bytes mib(std::int64_t amount) {
  return Bytes{amount * kMib};
}

/// A Burstable pod whose container "a" requests 64Mi of at most 128Mi; all of it counts.
PodRecord burstable_pod() {
  PodRecord record;
  record.pod.uid = "42";
  record.pod.containers = {
      {.name = "a",
       .kind = ContainerKind::kApp,
       .resources = {.requests = {{"memory", Quantity::from_units(64 * kMib)}},
                     .limits = {{"memory", Quantity::from_units(128 * kMib)}}}}};
  record.complete = true;
  record.qos_class = QosClass::kBurstable;
  record.class_source = ClassSource::kPodAnnotation;
  record.capped_request = {.pods = 1, .cpu = {}, .memory = mib(64)};
  record.counted_request = record.capped_request;
  return record;
}

// KEP-2570: 64Mi + 0.9 * 64Mi = 127506841.6 bytes, of which 31129 whole pages.
TEST(ContainerMemoryQos, ProtectsTheRequestAndThrottlesBelowTheLimit) {
  EXPECT_EQ(container_memory_qos(burstable_pod(), "a", kTiered),
            (MemoryQos{.low = mib(64), .high = Bytes{31'129 * 4096}}));
}

TEST(ContainerMemoryQos, ScalesTheReservationToWhatCounts) {
  PodRecord record = burstable_pod();
  record.counted_request.memory = mib(16);
  EXPECT_EQ(container_memory_qos(record, "a", kTiered).low, mib(16));
}

TEST(ContainerMemoryQos, IsNothingForAKubeletsPodOtherContainersAndIfOff) {
  PodRecord record = burstable_pod();
  EXPECT_EQ(container_memory_qos(record, "other", kTiered), MemoryQos{});
  EXPECT_EQ(container_memory_qos(record, "a", {}), MemoryQos{});
  record.kubelets_own = true;
  EXPECT_EQ(container_memory_qos(record, "a", kTiered), MemoryQos{});
}

TEST(ContainerMemoryQos, ThrottlesByThePageSizeOfTheKernel) {
  MemoryQosParams params = kTiered;
  params.page_size = Bytes{65'536};
  EXPECT_EQ(container_memory_qos(burstable_pod(), "a", params).high, Bytes{1945 * 65'536});
}

// pkg/kubelet/kuberuntime/kuberuntime_container_linux.go: memory.high only above the request, which
// it is not once it is rounded down to a page; nor where it is no limit.
TEST(ContainerMemoryQos, ThrottlesOnlyAboveTheRequestAndInRange) {
  Container container = burstable_pod().pod.containers[0];
  container.resources.requests["memory"] = Quantity::from_units(4096);
  for (const auto& [limit, high] : std::vector<std::pair<std::int64_t, std::optional<Bytes>>>{
           {8191, std::nullopt},
           {10'000, Bytes{8192}},
           {kInt64Max, Bytes{8'301'034'833'169'297'408}}}) {
    container.resources.limits["memory"] = Quantity::from_units(limit);
    EXPECT_EQ(container_memory_qos(QosClass::kBurstable, container, kTiered).high, high) << limit;
  }
  MemoryQosParams whole = kTiered;
  whole.throttling_thousandths = 1000;
  EXPECT_EQ(container_memory_qos(QosClass::kBurstable, container, whole).high, std::nullopt);
}

TEST(GivenMemoryQos, IsTheRulesAndElseTheKernelsDefault) {
  EXPECT_EQ(given_memory_qos({.low = mib(1)}, {}, kV2Layout),
            (MemoryQos{.min = mib(0), .low = mib(1), .high = kUnlimitedMemory}));
}

TEST(GivenMemoryQos, LeavesWhatTheEngineHasSet) {
  const MemoryQos wanted{.min = mib(0), .low = mib(1), .high = mib(2)};
  EngineResources engine;
  engine.unified = {{"memory.high", "max"}, {"memory.min", "0"}};
  EXPECT_EQ(given_memory_qos(wanted, engine, kV2Layout), MemoryQos{.low = mib(1)});
  engine.memory_reservation = kMib;
  EXPECT_EQ(given_memory_qos(wanted, engine, kV2Layout), MemoryQos{});
}

TEST(GivenMemoryQos, IsNothingOnV1AndIfOff) {
  const MemoryQos wanted{.low = mib(1)};
  EXPECT_EQ(given_memory_qos({}, {}, kV2Layout), MemoryQos{});
  EXPECT_EQ(given_memory_qos(wanted, {}, {.cpu = CgroupVersion::kV1, .memory = CgroupVersion::kV1}),
            MemoryQos{});
  EXPECT_EQ(given_memory_qos(wanted, {}, {.cpu = CgroupVersion::kV1, .memory = CgroupVersion::kV2}),
            MemoryQos{})
      << "runtimes use cgroup v1";
}

TEST(MissingValues, LeaveMemoryLowToTheEnginesReservation) {
  EngineResources engine;
  engine.memory_reservation = kMib;
  const CgroupValues wanted{.unified = {{"memory.low", "1"}, {"memory.min", "0"}}};
  EXPECT_EQ(missing_values(wanted, engine, kV2Layout).unified,
            (UnifiedValues{{"memory.min", "0"}}));
}

struct MemoryQosCase {
  std::string name;
  MemoryQos given;
  MemoryQos wanted;
  MemoryQos held;
  MemoryQos write;  ///< expected, as `next`
  MemoryQos next;
};

class NextMemoryQos : public ::testing::TestWithParam<MemoryQosCase> {};

TEST_P(NextMemoryQos, IsWrittenWhereItDiffers) {
  const MemoryQosCase& c = GetParam();
  const MemoryQos next = next_memory_qos(c.given, c.wanted);
  EXPECT_EQ(next, c.next);
  EXPECT_EQ(differing_memory_qos(next, c.held, kPage4K), c.write);
}

INSTANTIATE_TEST_SUITE_P(
    MemoryQos, NextMemoryQos,
    ::testing::Values(
        // The kernel shows whole pages.
        MemoryQosCase{"AsGiven",
                      {.low = Bytes{4097}},
                      {.low = Bytes{4097}},
                      {.low = Bytes{4096}},
                      {},
                      {.low = Bytes{4097}}},
        MemoryQosCase{"Resized",
                      {.low = mib(1)},
                      {.low = mib(2)},
                      {.low = mib(1)},
                      {.low = mib(2)},
                      {.low = mib(2)}},
        MemoryQosCase{"ChangedByOthers",
                      {.low = mib(1)},
                      {.low = mib(1)},
                      {.low = mib(0)},
                      {.low = mib(1)},
                      {.low = mib(1)}},
        MemoryQosCase{"SwitchedOff",
                      {.min = mib(1), .low = mib(0), .high = mib(2)},
                      {},
                      {.min = mib(1), .low = mib(0), .high = mib(2)},
                      {.min = mib(0), .high = kUnlimitedMemory},
                      {.min = mib(0), .low = mib(0), .high = kUnlimitedMemory}},
        MemoryQosCase{"SwitchedOn",
                      {.high = kUnlimitedMemory},
                      {.high = mib(1)},
                      {.high = kUnlimitedMemory},
                      {.high = mib(1)},
                      {.high = mib(1)}},
        MemoryQosCase{"NotGiven",
                      {.low = mib(0)},
                      {.low = mib(0), .high = mib(1)},
                      {.min = mib(9), .low = mib(0), .high = mib(9)},
                      {},
                      {.low = mib(0)}},
        MemoryQosCase{"RaisedByOthers",
                      {.high = mib(1)},
                      {.high = mib(1)},
                      {.high = mib(2)},
                      {.high = mib(1)},
                      {.high = mib(1)}},
        MemoryQosCase{"Lowered",
                      {.high = mib(2)},
                      {.high = mib(2)},
                      {.high = mib(1)},
                      {.high = mib(2)},
                      {.high = mib(2)}},
        MemoryQosCase{"Unreadable", {.low = mib(1)}, {.low = mib(2)}, {}, {}, {.low = mib(2)}}),
    [](const auto& test) { return test.param.name; });

/// A container of at most 128Mi is throttled at 100Mi, with patience for 30 s.
class DecideThrottling : public ::testing::Test {
 protected:
  /// @return what memory.high is raised to now
  std::optional<Bytes> look(std::int64_t events, std::int64_t now) {
    const auto before = seen_ ? seen_->raised : std::nullopt;
    snapshot_.events = events;
    decide_throttling(seen_, snapshot_, node_, patience_, BootSeconds{now});
    return seen_->raised == before ? std::nullopt : seen_->raised;
  }

  ThrottlingSnapshot snapshot_{.stalled_percent = 99, .high = mib(100), .limit = mib(128)};
  MemoryQosParams node_{.allocatable = mib(1000), .page_size = kPage4K};
  std::int64_t patience_ = 30;
  std::optional<Throttling> seen_;
};

TEST_F(DecideThrottling, RaisesAfterTheTimeInStepsUpToTheLimit) {
  EXPECT_EQ(look(100, 1000), std::nullopt) << "it may be of long ago";
  EXPECT_EQ(look(101, 1010), std::nullopt);
  EXPECT_EQ(seen_,
            (Throttling{.events = 101, .since = BootSeconds{1010}, .last = BootSeconds{1010}}));
  EXPECT_EQ(look(102, 1039), std::nullopt);
  EXPECT_EQ(look(103, 1040), mib(125));
  snapshot_.high = mib(125);
  EXPECT_EQ(look(104, 1069), std::nullopt) << "the next step has its own time";
  EXPECT_EQ(look(105, 1070), mib(128));
  snapshot_.high = mib(128);
  EXPECT_EQ(look(106, 1200), std::nullopt) << "the limit counts there";
  EXPECT_EQ(seen_->raised, mib(128)) << "it stays";
  EXPECT_EQ(seen_->since, std::nullopt);
}

TEST_F(DecideThrottling, RaisesASmallOneBy16Mi) {
  snapshot_.high = mib(20);
  look(1, 1000);
  look(2, 1010);
  EXPECT_EQ(look(3, 1040), mib(36));
}

TEST_F(DecideThrottling, IsNoneWithoutAMemoryHigh) {
  snapshot_.high = kUnlimitedMemory;
  look(1, 1000);
  look(2, 1010);
  EXPECT_EQ(seen_, Throttling{.events = 2});
}

TEST_F(DecideThrottling, BeginsAnewWhereThereWasAPause) {
  look(1, 1000);
  look(2, 1010);
  EXPECT_EQ(look(2, 1020), std::nullopt);
  EXPECT_EQ(seen_, Throttling{.events = 2});
  EXPECT_EQ(look(3, 1050), std::nullopt);
  EXPECT_EQ(seen_,
            (Throttling{.events = 3, .since = BootSeconds{1050}, .last = BootSeconds{1050}}));
}

// mm/memcontrol.c: up to two seconds lie between two events.
TEST_F(DecideThrottling, GoesOnWhileTheProcessSleeps) {
  look(1, 1000);
  look(2, 1010);
  const auto before = seen_;
  EXPECT_EQ(look(2, 1014), std::nullopt);
  EXPECT_EQ(seen_, before);
  EXPECT_EQ(look(3, 1040), mib(125));
}

TEST_F(DecideThrottling, IsOverAfterFiveSeconds) {
  look(1, 1000);
  look(2, 1010);
  look(2, 1015);
  EXPECT_EQ(seen_, Throttling{.events = 2});
}

// Reclaim that succeeds counts events too, and costs little time.
TEST_F(DecideThrottling, IsNoneWithoutAStall) {
  snapshot_.stalled_percent = 9;
  look(1, 1000);
  look(2, 1010);
  EXPECT_EQ(look(3, 1100), std::nullopt);
  EXPECT_EQ(seen_, Throttling{.events = 3});
  snapshot_.stalled_percent = 10;
  look(4, 1110);
  EXPECT_EQ(look(5, 1140), mib(125)) << "a tenth is a stall";
}

TEST_F(DecideThrottling, GoesByEventsAloneWithoutPsi) {
  snapshot_.stalled_percent.reset();
  look(1, 1000);
  look(2, 1010);
  EXPECT_EQ(look(3, 1040), mib(125));
}

TEST_F(DecideThrottling, RaisesToMaxBeyondTheNodeWithoutALimit) {
  snapshot_.limit.reset();
  snapshot_.high = mib(700);
  look(1, 1000);
  look(2, 1010);
  EXPECT_EQ(look(3, 1040), mib(875));
  snapshot_.high = mib(875);
  EXPECT_EQ(look(4, 1070), kUnlimitedMemory);
}

TEST_F(DecideThrottling, NeverRaisesWithoutPatience) {
  patience_ = 0;
  look(1, 1000);
  EXPECT_EQ(look(2, 1010), std::nullopt);
  EXPECT_EQ(look(3, 5000), std::nullopt);
}

/// Guaranteed pods request 64Mi, Burstable ones 32Mi.
class MemoryReservation : public ::testing::Test {
 protected:
  MemoryReservation() {
    settings_.reserve_memory = true;
    settings_.enforce_node_allocatable = false;
    tiers_.trees = {{.kubepods = "/podqos/kubepods",
                     .sums = {{.guaranteed = {.pods = 1, .cpu = {}, .memory = mib(64)},
                               .burstable = {.pods = 1, .cpu = {}, .memory = mib(32)}}}}};
  }

  Settings settings_;
  NodeState tiers_;
};

// mm/page_counter.c effective_protection: a child has at most its parent's, so that the burstable
// tier's memory.low takes that of the root.
TEST_F(MemoryReservation, IsOfRootAndBurstableTier) {
  EXPECT_EQ(root_limits(tiers_, tiers_.trees[0], settings_, {}).unified,
            (UnifiedValues{{"memory.min", "100663296"}, {"memory.low", "33554432"}}));
  const TierSums& sums = tiers_.trees[0].sums;
  EXPECT_EQ(wanted_tiers(sums, sums, settings_, {}).burstable.unified,
            (UnifiedValues{{"memory.low", "33554432"}}));
  EXPECT_EQ(wanted_tiers(sums, sums, settings_, {}).besteffort.unified, UnifiedValues{});
}

TEST_F(MemoryReservation, IsTakenBackFromTiersThatMayHaveIt) {
  TierSnapshots snapshots;
  snapshots.has_reservation = true;
  const TierValues values = decide_tier_write({}, TreeState::kMissing, snapshots, settings_);
  const UnifiedValues none{{"memory.min", "0"}, {"memory.low", "0"}};
  EXPECT_EQ(values.root.unified, none);
  EXPECT_EQ(values.burstable.unified, none);
  EXPECT_EQ(values.besteffort.unified, UnifiedValues{});
}

TEST_F(MemoryReservation, IsThePodsRequestAsFarAsItCounts) {
  PodRecord record = burstable_pod();
  EXPECT_EQ(pod_values(record, settings_)->unified, (UnifiedValues{{"memory.low", "67108864"}}));
  record.counted_request.memory = mib(16);
  EXPECT_EQ(pod_values(record, settings_)->unified, (UnifiedValues{{"memory.low", "16777216"}}));
  record.kubelets_own = true;
  EXPECT_EQ(pod_values(record, settings_)->unified, UnifiedValues{});
}

TEST_F(MemoryReservation, IsWrittenToAPodOnceAndAgainWithAnotherRequest) {
  const PodRecord record = burstable_pod();
  const UnifiedValues low{{"memory.low", "67108864"}};
  EXPECT_EQ(decide_pod_write(record, {}, settings_)->values.unified, low);
  EXPECT_EQ(decide_pod_write(record, {.written = record}, settings_)->values.unified,
            UnifiedValues{});
  PodRecord before = record;
  before.counted_request.memory = mib(16);
  EXPECT_EQ(decide_pod_write(record, {.written = before}, settings_)->values.unified, low);
}

TEST_F(MemoryReservation, IsTakenBackFromAPodWithoutIt) {
  const PodRecord record = burstable_pod();
  PodRecord smaller = record;
  smaller.pod.containers[0].resources.requests.clear();
  EXPECT_EQ(decide_pod_write(smaller, {.written = record}, settings_)->values.unified,
            (UnifiedValues{{"memory.low", "0"}}));
  EXPECT_EQ(
      decide_pod_write(record, {.may_differ = true, .has_reservation = true}, {})->values.unified,
      (UnifiedValues{{"memory.min", "0"}, {"memory.low", "0"}}));
  EXPECT_EQ(decide_pod_write(record, {}, {})->values.unified, UnifiedValues{});
}

}  // namespace
}  // namespace podqos::core
