// Events of a container's life on a machine in memory.

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/app/containers.h"
#include "tests/unit/app/fake_node.h"

namespace podqos::app {
namespace {

using containers::kBatchContainer;
using containers::kDatabaseContainer;
using containers::kLogContainer;
using containers::kWebContainer;
using containers::weight_of;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::StartsWith;

class Event : public ::testing::Test {
 protected:
  FakeNode node_{core::CgroupVersion::kV2};
};

TEST_F(Event, AdmissionMakesTreeAndPod) {
  node_.run(kWebContainer, Pid{10});
  // KEP-2254 and kubelet cm/helpers_linux.go: shares = milliCPU * 1024 / 1000.
  EXPECT_EQ(node_.file("/podqos/kubepods/burstable/poda", "cpu.weight"), weight_of(512));
  EXPECT_EQ(node_.file("/podqos/kubepods/burstable", "cpu.weight"), weight_of(512));
  EXPECT_EQ(node_.file("/podqos/kubepods/besteffort", "cpu.weight"), "1");
  EXPECT_EQ(node_.tree.processes.at(Pid{10}).cgroup, "/podqos/kubepods/burstable/poda/web");
  EXPECT_EQ(node_.records.tiers.sums.burstable,
            (core::TierSum{.pods = 1, .cpu = MilliCpu{500}, .memory = Bytes{64LL << 20U}}));
  EXPECT_THAT(node_.records.tiers.pending, IsEmpty());
  EXPECT_FALSE(node_.records.dirty);
}

TEST_F(Event, LostStateKeepsTheFormulaOfTheRuntime) {
  node_.settings.weight_formula = core::WeightFormulaSetting::kAuto;
  node_.run(kWebContainer, Pid{10});
  node_.tree.cgroups.at("/podqos/kubepods/burstable/poda/web").files["cpu.weight"] = weight_of(512);
  node_.records = {};
  ASSERT_TRUE(node_.reconcile());
  EXPECT_EQ(node_.file("/podqos/kubepods/burstable/poda", "cpu.weight"), weight_of(512));
  EXPECT_EQ(node_.file("/podqos/kubepods/burstable", "cpu.weight"), weight_of(512));
  EXPECT_EQ(node_.file("/podqos", "cpu.weight"), weight_of(8192));
}

TEST_F(Event, ASecondContainerRaisesThePod) {
  node_.run(kWebContainer, Pid{10});
  node_.run(kLogContainer, Pid{11});
  EXPECT_EQ(node_.file("/podqos/kubepods/burstable/poda", "cpu.weight"), weight_of(768));
  EXPECT_EQ(node_.file("/podqos/kubepods/burstable", "cpu.weight"), weight_of(768));
  EXPECT_EQ(node_.records.tiers.sums.burstable.pods, 1);
}

TEST_F(Event, PodsStandToAKubeletsAsTheirRequestsDo) {
  node_.tree.make("/kubepods");
  node_.tree.cgroups.at("/kubepods").files.at("cpu.weight") = "313";
  node_.records.tiers.sums.adopted = {.pods = 1, .cpu = MilliCpu{1000}, .memory = {}};
  node_.run(kWebContainer, Pid{10});
  EXPECT_EQ(node_.file("/podqos", "cpu.weight"), "156");  // 313 * 500 / 1000
}

TEST_F(Event, AGuaranteedPodIsBounded) {
  node_.run(kDatabaseContainer, Pid{10});
  EXPECT_EQ(node_.file("/podqos/kubepods/podc", "cpu.max"), "100000 100000");
  EXPECT_EQ(node_.file("/podqos/kubepods/podc", "memory.max"), std::to_string(1LL << 30U));
}

TEST_F(Event, TheEndOfTheLastPodLeavesNothing) {
  node_.run(kWebContainer, Pid{10});
  node_.run(kBatchContainer, Pid{11});
  for (const auto& [container, init] :
       {std::pair{kWebContainer, Pid{10}}, std::pair{kBatchContainer, Pid{11}}}) {
    node_.tree.end(init);
    ASSERT_TRUE(node_.end(container));
  }
  EXPECT_THAT(node_.tree.cgroups, ElementsAre(Key("/")));
  EXPECT_THAT(node_.records.pods, IsEmpty());
  EXPECT_THAT(node_.records.index, IsEmpty());
  EXPECT_EQ(node_.records.tiers.sums, core::TierSums{});
  EXPECT_THAT(node_.records.tiers.trees, IsEmpty());
}

TEST_F(Event, AContainerThatWasNeverCreatedIsForgotten) {
  node_.tree.start(Pid{1010}, "/");
  ASSERT_TRUE(node_.admit(kWebContainer, Pid{1010}));
  EXPECT_EQ(node_.records.tiers.pending.size(), 1U);
  node_.tree.end(Pid{1010});
  node_.run(kBatchContainer, Pid{11});
  EXPECT_THAT(node_.records.pods, ElementsAre(Key("b")));
  EXPECT_THAT(node_.tree.cgroups, Not(Contains(Key("/podqos/kubepods/burstable/poda"))));
  EXPECT_EQ(node_.file("/podqos/kubepods/burstable", "cpu.weight"), "1");
}

TEST_F(Event, AProcessInATierIsNamedAndNothingCounts) {
  node_.run(kBatchContainer, Pid{11});
  node_.tree.cgroups.at("/podqos/kubepods/burstable").enables_controllers = false;
  node_.tree.processes[Pid{99}] = {.start_time = StartTime{1},
                                   .cgroup = "/podqos/kubepods/burstable"};
  node_.tree.start(Pid{1010}, "/");
  const auto admission = node_.admit(kWebContainer, Pid{1010});
  ASSERT_FALSE(admission);
  EXPECT_EQ(admission.error().code, ErrorCode::kConflict);
  EXPECT_THAT(admission.error().message, StartsWith("pod a: /podqos/kubepods/burstable: "));
  EXPECT_EQ(node_.records.tiers.sums.burstable, core::TierSum{});
  EXPECT_THAT(node_.records.pods, ElementsAre(Key("b")));
}

/// A pod comes again with a lower limit than it uses: below its usage the kernel would kill.
TEST_F(Event, AMemoryLimitIsNeverBelowWhatThePodUses) {
  const auto limited = [](const char* id, const char* limits) {
    return FakeContainer{.id = id, .uid = "c", .annotations = {{"podqos.io/limits", limits}}};
  };
  node_.run(limited("db", "cpu=1,memory=1Gi"), Pid{10});
  node_.tree.processes.erase(Pid{10});
  const std::string pod = "/podqos/kubepods/podc";
  node_.tree.cgroups.at(pod).usage = 600LL << 20U;
  node_.run(limited("db2", "cpu=1,memory=512Mi"), Pid{11});
  EXPECT_EQ(node_.file(pod, "memory.max"), std::to_string(616LL << 20U));
  node_.run(limited("log", "cpu=1,memory=512Mi"), Pid{12});
  EXPECT_EQ(node_.file(pod, "memory.max"), std::to_string(616LL << 20U));
  node_.tree.cgroups.at(pod).usage = 100LL << 20U;
  node_.run(kBatchContainer, Pid{13});
  EXPECT_EQ(node_.file(pod, "memory.max"), std::to_string(616LL << 20U));
  ASSERT_TRUE(node_.reconcile());
  EXPECT_EQ(node_.file(pod, "memory.max"), std::to_string(512LL << 20U));
}

/// NRI reports a start late, and its process has ended since.
TEST_F(Event, AProcessThatReusesThePidOfAContainerIsLeftAlone) {
  for (const bool placed : {true, false}) {
    SCOPED_TRACE(placed);
    FakeNode node{core::CgroupVersion::kV2};
    node.tree.start(Pid{1010}, "/");
    if (placed) {
      ASSERT_TRUE(node.admit(kWebContainer, Pid{1010}));
    }
    const auto records = node.records.pods;
    node.tree.start(Pid{10}, "/elsewhere");
    const StartTime now = node.tree.processes.at(Pid{10}).start_time;
    const auto started = node.report_start(kWebContainer, Pid{10}, StartTime{now.value() - 1});
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, ErrorCode::kNotFound);
    EXPECT_EQ(node.tree.processes.at(Pid{10}).oom_score_adj, 0);
    EXPECT_EQ(node.records.pods, records);
    EXPECT_TRUE(node.report_start(kWebContainer, Pid{10}, now));
    EXPECT_NE(node.tree.processes.at(Pid{10}).oom_score_adj, 0);
  }
}

/// The end of the first one is reported late, or never.
TEST_F(Event, AContainerThatHasEndedLeavesNoEntryWhenItsPodComesAgain) {
  node_.run(kWebContainer, Pid{10});
  node_.tree.processes.erase(Pid{10});
  node_.run(kLogContainer, Pid{11});
  EXPECT_THAT(node_.records.index,
              ElementsAre(store::IndexEntry{.name = store::index_name("log"), .uid = "a"}));
}

/// Another program removes the cgroup while the record is written.
TEST_F(Event, APodsCgroupThatVanishesIsMadeAgain) {
  node_.run(kWebContainer, Pid{10});
  node_.tree.end(Pid{10});
  node_.tree.start(Pid{10}, "/elsewhere");
  node_.on_change = [&](const std::string&) {
    node_.tree.cgroups.erase("/podqos/kubepods/burstable/poda");
    node_.on_change = {};
  };
  node_.tree.start(Pid{1011}, "/");
  const auto admission = node_.admit(kLogContainer, Pid{1011});
  ASSERT_TRUE(admission) << admission.error().message;
  EXPECT_EQ(node_.file("/podqos/kubepods/burstable/poda", "cpu.weight"), weight_of(768));
}

/// A disk that is full for a moment: the pod is as it was, and nothing is left to recompute.
TEST_F(Event, AContainerThatCannotBeRecordedLeavesItsPodAsItWas) {
  node_.run(kWebContainer, Pid{10});
  const auto before = node_.records.pods;
  node_.tree.start(Pid{1011}, "/");
  // The mark, the index entry, the record.
  for (const int written : {0, 1, 2}) {
    SCOPED_TRACE(written);
    node_.fail_once_after(written);
    ASSERT_FALSE(node_.admit(kLogContainer, Pid{1011}));
    node_.allow_all();
    EXPECT_EQ(node_.records.pods, before);
    EXPECT_EQ(node_.records.index.size(), 1U);
    EXPECT_FALSE(node_.records.dirty);
  }
  node_.run(kBatchContainer, Pid{12});
  EXPECT_FALSE(node_.records.dirty);
  EXPECT_EQ(node_.records.tiers.sums.burstable.cpu, MilliCpu{500});
}

/// An event that does not look at what was interrupted must not hide it from those that do.
TEST_F(Event, WhatWasInterruptedStaysKnownUntilItIsMadeGood) {
  node_.run(kWebContainer, Pid{10});
  node_.tree.start(Pid{1011}, "/");
  node_.allow(3);  // the mark, an index entry, the record: not the sums
  ASSERT_FALSE(node_.admit(kLogContainer, Pid{1011}));
  node_.allow_all();
  {
    Transaction transaction = node_.begin();
    ASSERT_TRUE(transaction.finish());
  }
  node_.run(kBatchContainer, Pid{12});
  EXPECT_EQ(node_.records.tiers.sums.burstable.cpu, MilliCpu{750});
  EXPECT_EQ(node_.file("/podqos/kubepods/burstable", "cpu.weight"), weight_of(768));
}

TEST_F(Event, WithoutOneControllerAPodHasTheOthers) {
  node_.tree.refuses_cpu = true;
  node_.tree.start(Pid{1}, "/");
  const auto admission = node_.admit(kWebContainer, Pid{1});
  ASSERT_TRUE(admission) << admission.error().message;
  // A runtime would fail to write them.
  EXPECT_FALSE((*admission)->missing.cpu_shares);
  EXPECT_TRUE((*admission)->oom_score_adj);
  node_.run(kDatabaseContainer, Pid{11});
  ASSERT_TRUE(node_.end(kWebContainer));
  EXPECT_EQ(node_.file("/podqos/kubepods/podc", "memory.max"), std::to_string(1LL << 30U));
  EXPECT_FALSE(node_.records.dirty);

  node_.tree.enable_cpu();
  ASSERT_TRUE(node_.reconcile());
  EXPECT_EQ(node_.file("/podqos/kubepods/podc", "cpu.weight"), weight_of(1024));
}

/// On cgroup v1 the kernel holds a quota against the parent's, whichever is written first.
TEST(EventOnV1, APodsQuotaFollowsItsContainers) {
  FakeNode node{core::CgroupVersion::kV1};
  const FakeContainer half{
      .id = "web", .uid = "a", .annotations = {{"podqos.io/limits.web", "cpu=500m,memory=64Mi"}}};
  const FakeContainer whole{
      .id = "log", .uid = "a", .annotations = {{"podqos.io/limits.log", "cpu=1,memory=64Mi"}}};
  node.run(half, Pid{10});
  EXPECT_EQ(node.file("/podqos/kubepods/burstable/poda", "cpu.cfs_quota_us"), "50000");
  node.run(whole, Pid{11});
  EXPECT_EQ(node.file("/podqos/kubepods/burstable/poda", "cpu.cfs_quota_us"), "150000");
  EXPECT_EQ(node.file("/podqos/kubepods/burstable/poda", "memory.limit_in_bytes"),
            std::to_string(128LL << 20U));
}

TEST_F(Event, ARefusedClaimLeavesNothing) {
  node_.run(kWebContainer, Pid{10});
  const FakeRecords before = node_.records;
  const auto cgroups = node_.tree.cgroups.size();
  // The transaction withdraws another container first, whose creation was not finished.
  node_.tree.start(Pid{98}, "/");
  ASSERT_TRUE(node_.admit(kBatchContainer, Pid{98}));
  node_.tree.end(Pid{98});
  node_.tree.start(Pid{99}, "/");
  EXPECT_FALSE(node_.admit(
      {.id = "greedy", .uid = "e", .annotations = {{"podqos.io/limits", "cpu=1000000000"}}},
      Pid{99}));
  EXPECT_FALSE(node_.records.dirty);
  EXPECT_EQ(node_.records.tiers, before.tiers);
  EXPECT_EQ(node_.records.pods, before.pods);
  EXPECT_EQ(node_.tree.cgroups.size(), cgroups);
}

}  // namespace
}  // namespace podqos::app
