// Engines of both cgroup drivers on one node in memory.

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/app/containers.h"
#include "tests/unit/app/fake_node.h"

namespace podqos::app {
namespace {

using containers::kBatchContainer;
using containers::kBestEffort;
using containers::kBurstable;
using containers::kDatabaseContainer;
using containers::kLogContainer;
using containers::kWebContainer;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::UnorderedElementsAreArray;
using ::testing::Values;

constexpr const char* kBurstableSlice =
    "/podqos.slice/podqos-kubepods.slice/podqos-kubepods-burstable.slice";
constexpr const char* kBestEffortSlice =
    "/podqos.slice/podqos-kubepods.slice/podqos-kubepods-besteffort.slice";

const FakeContainer kLogElsewhere = containers::requesting("log", "cpu=250m,memory=64Mi");

/// A node with two engines: one uses the cgroupfs driver, the other systemd's.
class TwoDrivers : public TestWithParam<core::CgroupVersion> {
 protected:
  void run(core::Driver driver, const FakeContainer& container, Pid init) {
    node_.driver = driver;
    node_.run(container, init);
  }
  /// A container in each tree.
  void run_both(bool systemd_first) {
    if (systemd_first) run(core::Driver::kSystemd, kLogElsewhere, Pid{11});
    run(core::Driver::kCgroupfs, kWebContainer, Pid{10});
    if (!systemd_first) run(core::Driver::kSystemd, kLogElsewhere, Pid{11});
  }

  FakeNode node_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Versions, TwoDrivers,
                         Values(core::CgroupVersion::kV1, core::CgroupVersion::kV2),
                         [](const TestParamInfo<core::CgroupVersion>& version) {
                           return version.param == core::CgroupVersion::kV1 ? "V1" : "V2";
                         });

// Debian 13: Podman and Docker use systemd, containerd cgroupfs.
TEST_P(TwoDrivers, HaveATreeEachAndOneSetOfSums) {
  for (const bool systemd_first : {false, true}) {
    SCOPED_TRACE(systemd_first);
    run_both(systemd_first);
    EXPECT_EQ(node_.tree.processes.at(Pid{10}).cgroup, "/podqos/kubepods/burstable/poda/web");
    EXPECT_THAT(node_.tree.processes.at(Pid{11}).cgroup, StartsWith(cat(kBurstableSlice, "/")));
    EXPECT_EQ(node_.records.node.sums.burstable,
              (core::TierSum{.pods = 2, .cpu = MilliCpu{750}, .memory = Bytes{128LL << 20U}}));
    EXPECT_EQ(node_.shares(kBurstable), node_.written(512));
    EXPECT_EQ(node_.shares(kBurstableSlice), node_.written(256));
    node_.stop(kWebContainer, Pid{10});
    EXPECT_THAT(node_.tree.cgroups, Not(Contains(Key("/podqos"))));
    EXPECT_THAT(node_.tree.cgroups, Contains(Key(kBurstableSlice)));
    EXPECT_EQ(node_.records.node.sums.burstable.pods, 1);
    node_.stop(kLogElsewhere, Pid{11});
    EXPECT_THAT(node_.tree.cgroups, ElementsAre(Key("/")));
    EXPECT_THAT(node_.tree.units, IsEmpty());
  }
}

TEST_P(TwoDrivers, DivideTheShareOfTheNodeWhileBothAreInUse) {
  for (const bool systemd_first : {false, true}) {
    SCOPED_TRACE(systemd_first);
    run_both(systemd_first);
    // A third of 8 CPUs' shares, or weight 313, for 250m of 750m.
    EXPECT_EQ(node_.shares("/podqos.slice"), node_.tree.is_v2() ? "104" : "2730");
    node_.stop(systemd_first ? kWebContainer : kLogElsewhere, Pid{systemd_first ? 10 : 11});
    EXPECT_EQ(node_.shares(systemd_first ? "/podqos.slice" : "/podqos"), node_.written(8192));
    node_.stop(systemd_first ? kLogElsewhere : kWebContainer, Pid{systemd_first ? 11 : 10});
  }
}

TEST_P(TwoDrivers, ShareTheReservationOfMemory) {
  node_.settings.reserve_memory_percent = 100;
  run(core::Driver::kSystemd, kDatabaseContainer, Pid{12});
  run(core::Driver::kCgroupfs, kWebContainer, Pid{10});
  // Of 16Gi, 1Gi is the Guaranteed pod's, and 64Mi the Burstable one's.
  const auto burstable = std::to_string(15LL << 30U);
  const auto besteffort = std::to_string((15LL << 30U) - (64LL << 20U));
  for (const char* tier : {kBurstable, kBurstableSlice})
    EXPECT_EQ(node_.memory(tier), burstable) << tier;
  for (const char* tier : {kBestEffort, kBestEffortSlice})
    EXPECT_EQ(node_.memory(tier), besteffort) << tier;
}

TEST_P(TwoDrivers, AreFoundAgainAfterTheLossOfTheState) {
  run_both(true);
  const auto before = node_.records;
  node_.records = {};
  const auto report = node_.reconcile();
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->repaired, 2);
  EXPECT_EQ(node_.records.node.sums, before.node.sums);
  EXPECT_THAT(node_.records.node.trees, UnorderedElementsAreArray(before.node.trees));
  EXPECT_EQ(node_.records.pods, before.pods);
}

TEST_P(TwoDrivers, AFirstPodFindsBothTreesAfterTheLossOfTheState) {
  run_both(true);
  node_.records = {};
  run(core::Driver::kCgroupfs, kBatchContainer, Pid{13});
  EXPECT_EQ(node_.records.node.sums.burstable.pods, 2);
  EXPECT_THAT(node_.records.node.trees, SizeIs(2));
}

TEST_P(TwoDrivers, AContainerOfTheOtherDriverDoesNotJoinAPod) {
  run(core::Driver::kCgroupfs, kWebContainer, Pid{10});
  const auto before = node_.records;
  node_.driver = core::Driver::kSystemd;
  const auto refused = node_.admit(kLogContainer);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("its runtime uses the systemd driver, but its pod is in "
                        "/podqos/kubepods/burstable/poda, of the cgroupfs driver"));
  EXPECT_EQ(node_.records.node.trees, before.node.trees);
  EXPECT_FALSE(node_.records.dirty);
}

/// systemd answers only this many calls.
std::function<bool(const std::string&)> silent_after(int calls) {
  return [calls](const std::string& change) mutable {
    const bool call =
        change.starts_with("start ") || change.starts_with("stop ") || change.starts_with("unit ");
    return call && calls-- <= 0;
  };
}

// The container fails, and nothing else: the tree that could not be made is in nobody's way.
TEST_P(TwoDrivers, ATreeThatSystemdDoesNotMakeLeavesNothing) {
  // Of the outermost slice, the root's, and those of both tiers.
  for (const int calls : {0, 1, 2, 3}) {
    SCOPED_TRACE(calls);
    FakeNode node{GetParam()};
    node.run(kWebContainer, Pid{10});
    const FakeRecords before = node.records;
    const auto cgroups = node.tree.cgroups.size();
    node.refuses = silent_after(calls);
    node.driver = core::Driver::kSystemd;
    EXPECT_FALSE(node.admit(kLogElsewhere));
    EXPECT_FALSE(node.records.dirty);
    EXPECT_EQ(node.records, before);
    EXPECT_EQ(node.tree.cgroups.size(), cgroups);
    node.driver = core::Driver::kCgroupfs;
    node.run(kBatchContainer, Pid{11});
  }
}

TEST_P(TwoDrivers, AFirstPodThatSystemdDoesNotMakeLeavesNothing) {
  node_.refuses = silent_after(0);
  node_.driver = core::Driver::kSystemd;
  EXPECT_FALSE(node_.admit(kLogElsewhere));
  core::NodeState nothing;
  nothing.settings = node_.settings;
  EXPECT_EQ(node_.records.node, nothing);
  EXPECT_FALSE(node_.records.dirty);
  EXPECT_THAT(node_.tree.cgroups, ElementsAre(Key("/")));
}

// A silent systemd keeps nobody from a cgroup that is not its own.
TEST_P(TwoDrivers, TheOtherTreeCannotKeepAPodFromStarting) {
  node_.settings.reserve_memory_percent = 100;
  run(core::Driver::kSystemd, kLogElsewhere, Pid{12});
  run(core::Driver::kCgroupfs, kBatchContainer, Pid{13});
  node_.refuses = silent_after(0);
  run(core::Driver::kCgroupfs, kWebContainer, Pid{10});
  EXPECT_FALSE(node_.records.dirty);
  node_.refuses = {};
  ASSERT_TRUE(node_.reconcile());
  EXPECT_EQ(node_.memory(kBestEffortSlice), std::to_string((16LL << 30U) - (128LL << 20U)));
}

}  // namespace
}  // namespace podqos::app
