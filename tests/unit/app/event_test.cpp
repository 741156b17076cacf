// Events of a container's life on a machine in memory.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/app/container_start.h"
#include "common/sys/clock.h"
#include "tests/unit/app/containers.h"
#include "tests/unit/app/fake_node.h"

namespace podqos::app {
namespace {

using containers::kBatchContainer;
using containers::kBurstable;
using containers::kDatabaseContainer;
using containers::kDatabasePod;
using containers::kLogContainer;
using containers::kWebContainer;
using containers::kWebPod;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::StartsWith;

class Event : public ::testing::Test {
 protected:
  /// The CPU shares of pod a, the only one of the Burstable tier, are the tier's.
  void expect_web(std::int64_t shares) const {
    for (const char* cgroup : {kWebPod, kBurstable})
      EXPECT_EQ(node_.shares(cgroup), node_.written(shares)) << cgroup;
  }

  FakeNode node_{core::CgroupVersion::kV2};
};

TEST_F(Event, AdmissionMakesTreeAndPod) {
  node_.run(kWebContainer, Pid{10});
  // KEP-2254 and kubelet cm/helpers_linux.go: shares = milliCPU * 1024 / 1000.
  expect_web(512);
  EXPECT_EQ(node_.file("/podqos/kubepods/besteffort", "cpu.weight"), "1");
  EXPECT_EQ(node_.tree.processes.at(Pid{10}).cgroup, "/podqos/kubepods/burstable/poda/web");
  EXPECT_EQ(node_.records.node.sums.burstable,
            (core::TierSum{.pods = 1, .cpu = MilliCpu{500}, .memory = Bytes{64LL << 20U}}));
  EXPECT_THAT(node_.records.pending(), IsEmpty());
  EXPECT_FALSE(node_.records.dirty);
}

TEST_F(Event, LostStateKeepsTheFormulaOfTheRuntime) {
  node_.settings.weight_formula = core::WeightFormulaSetting::kAuto;
  node_.run(kWebContainer, Pid{10});
  node_.tree.cgroups.at(cat(kWebPod, "/web")).files["cpu.weight"] = node_.written(512);
  node_.records = {};
  ASSERT_TRUE(node_.reconcile());
  expect_web(512);
  EXPECT_EQ(node_.shares("/podqos"), node_.written(8192));
}

/// runc 1.3.2 makes 59 of the 512 shares that are annotated; older ones do of 1523.
TEST_F(Event, LearnsTheFormulaOnlyOfSharesThatTheEngineHasSet) {
  using Learned = std::optional<core::WeightFormula>;
  for (const auto& [told, learned] : {std::pair{512, Learned{core::WeightFormula::kLog}},
                                      std::pair{1523, Learned{std::nullopt}}}) {
    FakeNode node{core::CgroupVersion::kV2};
    node.settings.weight_formula = core::WeightFormulaSetting::kAuto;
    FakeContainer web = kWebContainer;
    web.resources.cpu_shares = told;
    const auto admission = node.admit(web);
    ASSERT_TRUE(admission && *admission);
    node.tree.start(Pid{10}, (*admission)->container.cgroup);
    node.tree.cgroups.at(cat(kWebPod, "/web")).files["cpu.weight"] = "59";
    ASSERT_TRUE(node.report_start(web, node.started(Pid{10}), Reporter::kHook));
    EXPECT_EQ(node.records.node.weight_formula, learned) << told;
  }
}

/// `doctor` compares it with the setting.
TEST_F(Event, LearnsTheFormulaOfTheRuntimeWhateverTheSetting) {
  node_.settings.weight_formula = core::WeightFormulaSetting::kLinear;
  const auto admission = node_.admit(kWebContainer);
  ASSERT_TRUE(admission && *admission);
  node_.tree.start(Pid{10}, (*admission)->container.cgroup);
  node_.tree.cgroups.at(cat(kWebPod, "/web")).files["cpu.weight"] = "59";
  ASSERT_TRUE(node_.report_start(kWebContainer, node_.started(Pid{10}), Reporter::kHook));
  EXPECT_EQ(node_.records.node.weight_formula, core::WeightFormula::kLog);
  EXPECT_EQ(node_.file(kWebPod, "cpu.weight"), "20");  // 1 + (512 - 2) * 9999 / 262142
}

TEST_F(Event, PodsStandToAKubeletsAsTheirRequestsDo) {
  node_.tree.make("/kubepods");
  node_.tree.cgroups.at("/kubepods").files.at("cpu.weight") = "313";
  node_.records.put({.uid = "k", .counted_cpu = MilliCpu{1000}, .kubelets_own = 1, .counts = 1});
  node_.run(kWebContainer, Pid{10});
  // Of 8000m 6500m are free: 313 * (500 + 3250) / (1000 + 3250).
  EXPECT_EQ(node_.file("/podqos", "cpu.weight"), "276");
}

TEST_F(Event, AGuaranteedPodIsBounded) {
  node_.run(kDatabaseContainer, Pid{10});
  EXPECT_EQ(node_.file(kDatabasePod, "cpu.max"), "100000 100000");
  EXPECT_EQ(node_.memory(kDatabasePod), std::to_string(1LL << 30U));
}

TEST_F(Event, TheEndOfTheLastPodLeavesNothing) {
  node_.run(kWebContainer, Pid{10});
  node_.run(kBatchContainer, Pid{11});
  node_.stop(kWebContainer, Pid{10});
  node_.stop(kBatchContainer, Pid{11});
  EXPECT_THAT(node_.tree.cgroups, ElementsAre(Key("/")));
  EXPECT_THAT(node_.records.pods, IsEmpty());
  EXPECT_THAT(node_.records.index, IsEmpty());
  EXPECT_EQ(node_.records.node.sums, core::TierSums{});
  EXPECT_THAT(node_.records.node.trees, IsEmpty());
}

TEST_F(Event, AContainerThatWasNeverCreatedIsForgotten) {
  ASSERT_TRUE(node_.admit(kWebContainer));
  EXPECT_EQ(node_.records.pending().size(), 1U);
  node_.tree.end(Pid{99});
  node_.run(kBatchContainer, Pid{11});
  EXPECT_THAT(node_.records.pods, ElementsAre(Key("b")));
  EXPECT_THAT(node_.tree.cgroups, Not(Contains(Key(kWebPod))));
  EXPECT_EQ(node_.file(kBurstable, "cpu.weight"), "1");
}

TEST_F(Event, AProcessInATierIsNamedAndNothingCounts) {
  node_.run(kBatchContainer, Pid{11});
  node_.tree.cgroups.at(kBurstable).enables_controllers = false;
  node_.tree.processes[Pid{98}] = {.start_time = StartTime{1}, .cgroup = kBurstable};
  const auto admission = node_.admit(kWebContainer);
  ASSERT_FALSE(admission);
  EXPECT_EQ(admission.error().code, ErrorCode::kConflict);
  EXPECT_THAT(admission.error().message, StartsWith("pod a: /podqos/kubepods/burstable: "));
  EXPECT_EQ(node_.records.node.sums.burstable, core::TierSum{});
  EXPECT_THAT(node_.records.pods, ElementsAre(Key("b")));
}

/// A pod comes again with a lower limit than it uses: below its usage the kernel would kill.
TEST_F(Event, AMemoryLimitIsNeverBelowWhatThePodUses) {
  const auto limited = [](const char* id, const char* limits) {
    return FakeContainer{.id = id, .uid = "c", .annotations = {{"podqos.io/limits", limits}}};
  };
  node_.run(limited("db", "cpu=1,memory=1Gi"), Pid{10});
  node_.tree.processes.erase(Pid{10});
  node_.tree.cgroups.at(kDatabasePod).usage = 600LL << 20U;
  node_.run(limited("db2", "cpu=1,memory=512Mi"), Pid{11});
  EXPECT_EQ(node_.memory(kDatabasePod), std::to_string(616LL << 20U));
  node_.run(limited("log", "cpu=1,memory=512Mi"), Pid{12});
  EXPECT_EQ(node_.memory(kDatabasePod), std::to_string(616LL << 20U));
  node_.tree.cgroups.at(kDatabasePod).usage = 100LL << 20U;
  node_.run(kBatchContainer, Pid{13});
  EXPECT_EQ(node_.memory(kDatabasePod), std::to_string(616LL << 20U));
  ASSERT_TRUE(node_.reconcile());
  EXPECT_EQ(node_.memory(kDatabasePod), std::to_string(512LL << 20U));
}

/// NRI reports a start late, and its process has ended since.
TEST_F(Event, AProcessThatReusesThePidOfAContainerIsLeftAlone) {
  for (const bool placed : {true, false}) {
    SCOPED_TRACE(placed);
    FakeNode node{core::CgroupVersion::kV2};
    if (placed) {
      ASSERT_TRUE(node.admit(kWebContainer));
    }
    const auto records = node.records.pods;
    node.tree.start(Pid{10}, "/elsewhere");
    const Init now = node.started(Pid{10});
    Init earlier = now;
    earlier.process.start_time = StartTime{now.process.start_time.value() - 1};
    const auto started = node.report_start(kWebContainer, earlier, Reporter::kPlugin);
    ASSERT_FALSE(started);
    EXPECT_EQ(started.error().code, ErrorCode::kNotFound);
    EXPECT_EQ(node.tree.processes.at(Pid{10}).oom_score_adj, 0);
    EXPECT_EQ(node.records.pods, records);
    EXPECT_TRUE(node.report_start(kWebContainer, now, Reporter::kPlugin));
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
    node_.tree.cgroups.erase(kWebPod);
    node_.on_change = {};
  };
  const auto admission = node_.admit(kLogContainer);
  ASSERT_TRUE(admission) << admission.error().message;
  EXPECT_EQ(node_.shares(kWebPod), node_.written(768));
}

/// A disk that is full for a moment: the pod is as it was, and nothing is left to reconcile.
TEST_F(Event, AContainerThatCannotBeRecordedLeavesItsPodAsItWas) {
  node_.run(kWebContainer, Pid{10});
  const auto before = node_.records.pods;
  // The mark, the index entry, the record.
  for (const int written : {0, 1, 2}) {
    SCOPED_TRACE(written);
    node_.fail_once_after(written);
    ASSERT_FALSE(node_.admit(kLogContainer));
    node_.allow_all();
    EXPECT_EQ(node_.records.pods, before);
    EXPECT_EQ(node_.records.index.size(), 1U);
    EXPECT_FALSE(node_.records.dirty);
  }
  node_.run(kBatchContainer, Pid{12});
  EXPECT_FALSE(node_.records.dirty);
  EXPECT_EQ(node_.records.node.sums.burstable.cpu, MilliCpu{500});
}

/// An event that does not look at what was interrupted must not hide it from those that do.
TEST_F(Event, WhatWasInterruptedStaysKnownUntilItIsMadeGood) {
  node_.run(kWebContainer, Pid{10});
  node_.allow(3);  // the mark, an index entry, the record: not the sums
  ASSERT_FALSE(node_.admit(kLogContainer));
  node_.allow_all();
  ASSERT_TRUE(node_.begin().finish());
  node_.run(kBatchContainer, Pid{12});
  EXPECT_EQ(node_.records.node.sums.burstable.cpu, MilliCpu{750});
  EXPECT_EQ(node_.shares(kBurstable), node_.written(768));
}

TEST_F(Event, ATierThatCouldNotBeWrittenIsWrittenByTheNextEvent) {
  node_.run(kWebContainer, Pid{10});
  node_.refuses = [](const std::string& change) {
    return change.contains("/burstable/cpu.weight");
  };
  node_.run(kLogContainer, Pid{11});
  EXPECT_EQ(node_.shares(kBurstable), node_.written(512));
  node_.refuses = {};
  node_.run(kBatchContainer, Pid{12});
  EXPECT_EQ(node_.shares(kBurstable), node_.written(768));
}

TEST_F(Event, WithoutOneControllerAPodHasTheOthers) {
  node_.tree.refuses_cpu = true;
  const auto admission = node_.admit(kWebContainer);
  ASSERT_TRUE(admission) << admission.error().message;
  // A runtime would fail to write them.
  EXPECT_FALSE((*admission)->missing.cpu_shares);
  EXPECT_TRUE((*admission)->oom_score_adj);
  node_.run(kDatabaseContainer, Pid{11});
  ASSERT_TRUE(node_.end(kWebContainer));
  EXPECT_EQ(node_.memory(kDatabasePod), std::to_string(1LL << 30U));
  EXPECT_FALSE(node_.records.dirty);

  node_.tree.enable_cpu();
  ASSERT_TRUE(node_.reconcile());
  EXPECT_EQ(node_.shares(kDatabasePod), node_.written(1024));
}

/// On cgroup v1 the kernel holds a quota against the parent's, whichever is written first.
TEST(EventOnV1, APodsQuotaFollowsItsContainers) {
  FakeNode node{core::CgroupVersion::kV1};
  const auto limited = [](const std::string& id, const char* limits) {
    return FakeContainer{.id = id, .uid = "a", .annotations = {{"podqos.io/limits." + id, limits}}};
  };
  node.run(limited("web", "cpu=500m,memory=64Mi"), Pid{10});
  EXPECT_EQ(node.file(kWebPod, "cpu.cfs_quota_us"), "50000");
  node.run(limited("log", "cpu=1,memory=64Mi"), Pid{11});
  EXPECT_EQ(node.file(kWebPod, "cpu.cfs_quota_us"), "150000");
  EXPECT_EQ(node.memory(kWebPod), std::to_string(128LL << 20U));
}

TEST_F(Event, ARefusedClaimLeavesNothing) {
  node_.run(kWebContainer, Pid{10});
  const FakeRecords before = node_.records;
  const auto cgroups = node_.tree.cgroups.size();
  // The transaction withdraws another container first, whose creation was not finished.
  node_.fail_to_create(kBatchContainer);
  EXPECT_FALSE(node_.admit(
      {.id = "greedy", .uid = "e", .annotations = {{"podqos.io/limits", "cpu=1000000000"}}}));
  EXPECT_FALSE(node_.records.dirty);
  EXPECT_EQ(node_.records, before);
  EXPECT_EQ(node_.tree.cgroups.size(), cgroups);
}

/// Nor is there a row of a pod that could not be recorded.
TEST_F(Event, APodThatCannotBeRecordedLeavesNothing) {
  node_.run(kWebContainer, Pid{10});
  const auto before = node_.records.rows;
  node_.fail_once_after(0);
  ASSERT_FALSE(node_.admit(kBatchContainer));
  node_.allow_all();
  EXPECT_EQ(node_.records.rows, before);
  EXPECT_FALSE(node_.records.dirty);
}

/// A service of Podman lives on where the creation of a container has failed.
TEST(Creation, HasFailedIfItTakesTooLong) {
  for (const std::int64_t age : {115, 121}) {
    for (const bool by_reconcile : {true, false}) {
      FakeNode node{core::CgroupVersion::kV2};
      node.pending_since = BootSeconds{sys::seconds_since_boot() - age};
      ASSERT_TRUE(node.admit(kDatabaseContainer));
      node.pending_since.reset();
      if (by_reconcile) {
        ASSERT_TRUE(node.reconcile());
      }
      node.run(kWebContainer, Pid{10});
      EXPECT_EQ(node.records.pods.contains("c"), age == 115) << age << by_reconcile;
      EXPECT_EQ(node.records.pending().empty(), age != 115) << age << by_reconcile;
    }
  }
}

FakeContainer realtime(FakeContainer container) {
  container.resources.cpu_realtime_runtime = 9500;
  return container;
}

class Realtime : public ::testing::Test {
 protected:
  Realtime() {
    node_.run(kLogContainer, Pid{10});
    node_.tree.start(Pid{99}, "/");
    node_.tree.start(Pid{20}, "/engine/web");
    before_ = node_.records;
    changes_ = node_.changes.size();
  }

  /// Nothing has changed for the other container of the pod.
  void expect_nothing_kept() const {
    EXPECT_EQ(node_.changes.size(), changes_);
    EXPECT_EQ(node_.records, before_);
    EXPECT_FALSE(node_.records.dirty);
  }

  FakeNode node_{core::CgroupVersion::kV1};
  FakeRecords before_;
  std::size_t changes_ = 0;
};

TEST_F(Realtime, IsNotAdmittedAndNothingOfItIsKept) {
  const auto admission = node_.admit(realtime(kWebContainer), Pid{99}, "/engine/web");
  ASSERT_FALSE(admission);
  EXPECT_EQ(admission.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(admission.error().message,
              AllOf(HasSubstr("pod a: "), HasSubstr("realtimeRuntime 9500"),
                    HasSubstr("/podqos/kubepods/burstable/poda")));
  expect_nothing_kept();
}

TEST_F(Realtime, ThatRunsElsewhereIsNotRegistered) {
  bool registered = false;
  const auto done = node_.report_start(realtime(kWebContainer), node_.started(Pid{20}),
                                       Reporter::kHook, [&](const Admission&) {
                                         registered = true;
                                         return Status{};
                                       });
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("realtimeRuntime 9500"));
  EXPECT_FALSE(registered);
  expect_nothing_kept();
}

TEST_F(Realtime, InAKubeletsPodIsCounted) {
  const auto admission =
      node_.admit(realtime(FakeContainer{.id = "web", .uid = "k"}), Pid{99}, "/kubepods/podk/web");
  ASSERT_TRUE(admission) << admission.error().message;
  EXPECT_TRUE((*admission)->record.kubelets_own);
}

TEST(RealtimeOnV2, IsPlaced) {
  FakeNode node{core::CgroupVersion::kV2};
  node.run(realtime(kWebContainer), Pid{10});
  EXPECT_EQ(node.tree.processes.at(Pid{10}).cgroup, "/podqos/kubepods/burstable/poda/web");
}

}  // namespace
}  // namespace podqos::app
