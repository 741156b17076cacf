// Which tier is under pressure, and what an eviction does, on a machine in memory.
#include "common/app/eviction.h"

#include <cstdint>
#include <string>

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
using containers::kWebPod;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::int64_t kMebi = std::int64_t{1} << 20U;
constexpr Bytes kNodeMemory{1000 * kMebi};

class EvictionOf : public ::testing::TestWithParam<core::CgroupVersion> {
 protected:
  void SetUp() override {
    node_.run(kWebContainer, Pid{10});
    node_.run(kBatchContainer, Pid{11});
    node_.run(kDatabaseContainer, Pid{12});
    node_.changes.clear();
    node_.settings.eviction.besteffort = core::MemoryPressure{.percent = 60, .seconds = 30};
  }

  void use(const std::string& cgroup, std::int64_t bytes, std::int64_t inactive_file = 0) {
    const bool is_v2 = node_.tree.is_v2();
    auto& held = node_.tree.cgroups.at(cgroup);
    held.usage = bytes;
    held.files["memory.stat"] =
        cat("file 1\n", is_v2 ? "inactive_file " : "total_inactive_file ", inactive_file);
  }

  std::optional<PressedTier> find(std::int64_t now) {
    Transaction transaction = node_.begin();
    return evictor_.find_pressed(transaction.machine(), transaction.node(), node_.settings,
                                 kNodeMemory, BootSeconds{now});
  }

  Result<bool> evict(const char* tier) {
    Transaction transaction = node_.begin();
    auto evicted = evict_from(transaction, {.cgroup = tier, .measured = "much"});
    EXPECT_TRUE(transaction.finish_if_changed());
    return evicted;
  }

  FakeNode node_{GetParam()};
  Evictor evictor_;
};

TEST_P(EvictionOf, ATierFollowsItsWorkingSetWithoutPsi) {
  use(kBestEffort, 700 * kMebi, 100 * kMebi);
  EXPECT_EQ(find(100), std::nullopt);
  EXPECT_EQ(find(129), std::nullopt);
  const auto pressed = find(130);
  ASSERT_TRUE(pressed);
  EXPECT_EQ(pressed->qos_class, core::QosClass::kBestEffort);
  EXPECT_EQ(pressed->cgroup, kBestEffort);
  EXPECT_EQ(pressed->measured, "its working set was 60 % of 1000Mi, and at least 60 % for 30 s");
  use(kBestEffort, 700 * kMebi, 101 * kMebi);
  EXPECT_EQ(find(131), std::nullopt);
}

TEST_P(EvictionOf, ATierGoesByTheLowestLimit) {
  node_.settings.eviction.besteffort->seconds = 1;
  use(kBestEffort, 60 * kMebi);
  const char* const file = node_.tree.is_v2() ? "memory.max" : "memory.limit_in_bytes";
  node_.tree.cgroups.at("/podqos/kubepods").files.at(file) = std::to_string(100 * kMebi);
  EXPECT_EQ(find(1), std::nullopt);
  EXPECT_TRUE(find(2));
  use(kBestEffort, 59 * kMebi);
  EXPECT_EQ(find(3), std::nullopt);
  node_.tree.cgroups.at(kBestEffort).files.at(file) = std::to_string(90 * kMebi);
  EXPECT_EQ(find(4), std::nullopt);
  EXPECT_TRUE(find(5));
}

TEST_P(EvictionOf, ATierWaitsForTheInterval) {
  node_.settings.eviction.besteffort->seconds = 1;
  use(kBestEffort, 900 * kMebi);
  EXPECT_EQ(find(1), std::nullopt);
  const auto pressed = find(2);
  ASSERT_TRUE(pressed);
  node_.records.node.eviction = core::EvictionRecord{.at = BootSeconds{2}};
  EXPECT_EQ(find(61), std::nullopt);
  EXPECT_EQ(find(62), std::nullopt);  // It begins anew.
  EXPECT_TRUE(find(63));
}

TEST_P(EvictionOf, ATierDoesNotFollowTheOthers) {
  node_.settings.eviction.besteffort->seconds = 1;
  use(kBestEffort, 10 * kMebi);
  use(kBurstable, 990 * kMebi);
  EXPECT_EQ(find(1), std::nullopt);
  EXPECT_EQ(find(100), std::nullopt);
}

TEST_P(EvictionOf, APodKillsItsContainersAlone) {
  use("/podqos/kubepods/besteffort/podb", 5 * kMebi);
  const auto evicted = evict(kBestEffort);
  ASSERT_TRUE(evicted) << evicted.error().message;
  EXPECT_TRUE(*evicted);
  EXPECT_FALSE(node_.tree.processes.contains(Pid{11}));
  EXPECT_TRUE(node_.tree.processes.contains(Pid{10}));
  EXPECT_TRUE(node_.tree.processes.contains(Pid{12}));
  EXPECT_THAT(node_.changes, Contains("kill   /podqos/kubepods/besteffort/podb/batch"));
}

TEST_P(EvictionOf, APodHappensOnce) {
  use("/podqos/kubepods/besteffort/podb", 5 * kMebi);
  ASSERT_TRUE(evict(kBestEffort).value_or(false));
  node_.records.node.eviction.reset();
  node_.changes.clear();
  // Its engine has not told of its end yet.
  const auto again = evict(kBestEffort);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_FALSE(*again);
  EXPECT_THAT(node_.changes, Not(Contains(HasSubstr("kill"))));
}

// As containerd's and CRI-O's plugins on one node, or one that is started again.
TEST_P(EvictionOf, APodIsTheOnlyOneInTheInterval) {
  use("/podqos/kubepods/besteffort/podb", 5 * kMebi);
  use(kWebPod, 100 * kMebi);
  ASSERT_TRUE(evict(kBestEffort).value_or(false));
  const auto other = evict(kBurstable);
  ASSERT_TRUE(other) << other.error().message;
  EXPECT_FALSE(*other);
  EXPECT_TRUE(node_.tree.processes.contains(Pid{10}));
}

// Without cgroup.kill what is killed is frozen, and ends only once it is thawed.
TEST_P(EvictionOf, APodIsFinishedIfThePluginDies) {
  node_.run(kLogContainer, Pid{13});
  use(kWebPod, 200 * kMebi);
  const auto tree = node_.tree;
  const auto records = node_.records;
  bool cut_off = true;
  for (int allowed = 0; cut_off && allowed < 20; ++allowed) {
    SCOPED_TRACE(allowed);
    node_.tree = tree;
    node_.records = records;
    node_.allow(allowed);
    {
      Transaction transaction = node_.begin();
      const auto evicted = evict_from(transaction, {.cgroup = kBurstable, .measured = "much"});
      if (evicted) static_cast<void>(transaction.finish_if_changed().has_value());
    }
    cut_off = node_.changes_left == 0;
    node_.allow_all();
    ASSERT_TRUE(node_.reconcile());
    Transaction transaction = node_.begin();
    ASSERT_TRUE(finish_eviction(transaction));
    ASSERT_TRUE(transaction.finish());
    const bool begun = node_.records.node.eviction.has_value();
    EXPECT_EQ(node_.tree.processes.contains(Pid{10}), !begun);
    EXPECT_EQ(node_.tree.processes.contains(Pid{13}), !begun);
    EXPECT_TRUE(node_.tree.processes.contains(Pid{12}));
  }
  EXPECT_FALSE(cut_off);
}

TEST_P(EvictionOf, APodThatRunsAgainIsSpared) {
  node_.records.node.eviction = core::EvictionRecord{
      .killing = {{.cgroup = cat(kWebPod, "/web"), .init = {Pid{10}, StartTime{1}}}}};
  Transaction transaction = node_.begin();
  ASSERT_TRUE(finish_eviction(transaction));
  EXPECT_TRUE(node_.tree.processes.contains(Pid{10}));
  EXPECT_THAT(transaction.node().eviction->killing, IsEmpty());
}

TEST_P(EvictionOf, APodSparesThoseWithinTheirRequests) {
  use(kWebPod, 64 * kMebi);
  const auto evicted = evict(kBurstable);
  ASSERT_TRUE(evicted) << evicted.error().message;
  EXPECT_FALSE(*evicted);
  EXPECT_THAT(node_.changes, Each("record"));
  use(kWebPod, 64 * kMebi + 1);
  EXPECT_TRUE(evict(kBurstable).value_or(false));
  EXPECT_FALSE(node_.tree.processes.contains(Pid{10}));
}

INSTANTIATE_TEST_SUITE_P(EachVersion, EvictionOf,
                         ::testing::Values(core::CgroupVersion::kV1, core::CgroupVersion::kV2),
                         [](const auto& version) {
                           return version.param == core::CgroupVersion::kV1 ? "V1" : "V2";
                         });

class EvictionByPressure : public ::testing::Test {
 protected:
  FakeNode node_{core::CgroupVersion::kV2};
};

// Documentation/accounting/psi.rst.
TEST_F(EvictionByPressure, GoesByTheTimeForWhichAllTasksWaited) {
  node_.run(kBatchContainer, Pid{11});
  node_.settings.eviction.besteffort = core::MemoryPressure{.percent = 60, .seconds = 1};
  node_.tree.cgroups.at(kBestEffort).files["memory.pressure"] =
      "some avg10=99.00 avg60=0.00 avg300=0.00 total=1\n"
      "full avg10=59.99 avg60=80.00 avg300=0.00 total=1";
  Evictor evictor;
  const auto find = [&](std::int64_t now) {
    Transaction transaction = node_.begin();
    return evictor.find_pressed(transaction.machine(), transaction.node(), node_.settings,
                                kNodeMemory, BootSeconds{now});
  };
  EXPECT_EQ(find(1), std::nullopt);
  EXPECT_EQ(find(100), std::nullopt);
  node_.tree.cgroups.at(kBestEffort).files["memory.pressure"] =
      "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n"
      "full avg10=60.00 avg60=0.00 avg300=0.00 total=1";
  EXPECT_EQ(find(101), std::nullopt);
  const auto pressed = find(102);
  ASSERT_TRUE(pressed);
  EXPECT_EQ(pressed->measured,
            "all its tasks waited for memory 60 % of the time, and at least 60 % for 1 s");
}

TEST(EvictionBySystemd, IsLeftToOomdOnCgroupV2) {
  FakeNode node{core::CgroupVersion::kV2, core::Driver::kSystemd};
  node.settings.eviction.besteffort = core::MemoryPressure{.percent = 60, .seconds = 1};
  node.run(kBatchContainer, Pid{11});
  const std::string tier = "/podqos.slice/podqos-kubepods.slice/podqos-kubepods-besteffort.slice";
  node.tree.cgroups.at(tier).usage = kNodeMemory.value();
  node.tree.cgroups.at(tier).files["memory.stat"] = "inactive_file 0";
  Evictor evictor;
  for (const std::int64_t now : {1, 2, 3}) {
    Transaction transaction = node.begin();
    EXPECT_EQ(evictor.find_pressed(transaction.machine(), transaction.node(), node.settings,
                                   kNodeMemory, BootSeconds{now}),
              std::nullopt);
  }
}

}  // namespace
}  // namespace podqos::app
