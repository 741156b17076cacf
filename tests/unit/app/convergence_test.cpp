// Memory limits that come down to their rule, on a machine in memory, on both cgroup versions.
#include "common/app/convergence.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/app/containers.h"
#include "tests/unit/app/fake_node.h"
#include "tests/unit/test_clock.h"

namespace podqos::app {
namespace {

using containers::kBatchContainer;
using containers::kBestEffort;
using containers::kDatabaseContainer;
using std::chrono::seconds;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::Values;

constexpr std::int64_t kTierMi = std::int64_t{1} << 20U;
constexpr const char* kRootOfPods = "/podqos/kubepods";

/// Housekeeping comes every few seconds.
TEST(Housekeeping, ChangesNothingWhereNothingHasChanged) {
  FakeNode node{core::CgroupVersion::kV2};
  node.run(kBatchContainer, Pid{10});
  node.changes.clear();
  Transaction transaction = node.begin();
  transaction.converge();
  ASSERT_TRUE(transaction.finish());
  EXPECT_THAT(node.changes, IsEmpty());
}

/// A node of 2 GiB whose Guaranteed pod has requested 1 GiB: that is left to the tiers.
class TierAboveItsRule : public TestWithParam<core::CgroupVersion> {
 protected:
  static constexpr std::int64_t kRule = 1024 * kTierMi;

  void SetUp() override {
    node_.capacity.memory = Bytes{2048 * kTierMi};
    node_.run(kBatchContainer, Pid{10});
    tier().usage = 1500 * kTierMi;
    node_.settings.reserve_memory_percent = 100;
    node_.run(kDatabaseContainer, Pid{11});
    ASSERT_TRUE(node_.reconcile());
    expect_limit(1516 * kTierMi);
  }

  cgroup::FakeTree::Cgroup& tier() { return node_.tree.cgroups.at(kBestEffort); }
  /// Page cache that the kernel can drop.
  void let_reclaim(std::int64_t bytes) {
    tier().reclaimable = bytes;
    if (node_.tree.is_v2())
      tier().files["memory.reclaim"] = "";
    else
      tier().files["memory.stat"] = cat("total_inactive_file ", bytes, "\ntotal_dirty 0");
  }
  void expect_limit(std::int64_t bytes) const {
    EXPECT_EQ(node_.memory(kBestEffort), std::to_string(bytes));
  }

  /// Housekeeping, which finds what is above its rule.
  void find() {
    Transaction transaction = node_.begin();
    transaction.converge();
    ASSERT_TRUE(transaction.finish());
    convergence_.hold(transaction.held_limits());
  }
  /// One step, as Convergence::step().
  bool step() {
    cgroup::FakeMachine machine{node_.tree, [this](const std::string& change) {
                                  unlocked_.push_back(change);
                                  return Status{};
                                }};
    if (!convergence_.reclaim(machine)) return false;
    Transaction transaction = node_.begin();
    const auto done = convergence_.lower(transaction);
    EXPECT_TRUE(done) << done.error().message;
    return true;
  }
  /// @return how many steps it took until none is left, or nothing is to be had
  int converge() {
    int steps = 0;
    while (!convergence_.held().empty() && step())
      ++steps;
    return steps;
  }

  FakeNode node_{GetParam()};
  LeapingClock clock_;
  Convergence convergence_{clock_};
  std::vector<std::string> unlocked_;  ///< changes that were made without the lock
};

INSTANTIATE_TEST_SUITE_P(, TierAboveItsRule,
                         Values(core::CgroupVersion::kV1, core::CgroupVersion::kV2),
                         [](const TestParamInfo<core::CgroupVersion>& version) {
                           return version.param == core::CgroupVersion::kV1 ? "V1" : "V2";
                         });

TEST_P(TierAboveItsRule, ComesDownAtOnceWithItsUsage) {
  find();
  tier().usage = 1200 * kTierMi;
  EXPECT_TRUE(step());
  expect_limit(1216 * kTierMi);
  tier().usage = 100 * kTierMi;
  EXPECT_TRUE(step());
  expect_limit(kRule);
  EXPECT_THAT(convergence_.held(), IsEmpty());
  EXPECT_EQ(convergence_.steps().lowered, 2U);
  EXPECT_THAT(unlocked_, IsEmpty());
}

TEST_P(TierAboveItsRule, ComesDownByWhatTheKernelReclaims) {
  find();
  let_reclaim(1000 * kTierMi);
  EXPECT_LE(converge(), node_.tree.is_v2() ? 20 : 35);
  expect_limit(kRule);
  EXPECT_THAT(convergence_.held(), IsEmpty());
  // Limits are written under the lock, and what takes time is done without it.
  EXPECT_THAT(unlocked_, Each(HasSubstr("memory.reclaim")));
  EXPECT_THAT(node_.changes, Each(Not(HasSubstr("memory.reclaim"))));
}

/// An event fills no gap: the limit stays where the last step has left it.
TEST_P(TierAboveItsRule, IsNotRaisedByAnEvent) {
  tier().usage = 1516 * kTierMi;
  node_.run(containers::kWebContainer, Pid{12});
  expect_limit(1516 * kTierMi);
}

TEST_P(TierAboveItsRule, PausesWhereNothingCanBeReclaimed) {
  find();
  let_reclaim(0);
  EXPECT_FALSE(step());
  EXPECT_EQ(convergence_.steps().pauses, 1U);
  unlocked_.clear();
  EXPECT_FALSE(step());
  clock_.pass(seconds{1});
  EXPECT_FALSE(step());
  EXPECT_EQ(convergence_.steps().pauses, 2U);
  clock_.pass(seconds{1});
  EXPECT_FALSE(step());
  EXPECT_EQ(convergence_.steps().pauses, 2U);
  // Usage that falls meanwhile is not waited for.
  tier().usage = 100 * kTierMi;
  EXPECT_TRUE(step());
  expect_limit(kRule);
}

TEST_P(TierAboveItsRule, PausesWhileItRefaultsAndGoesOnLater) {
  find();
  let_reclaim(1000 * kTierMi);
  EXPECT_TRUE(step());
  const std::string limit = node_.memory(kBestEffort);
  // 8 MiB in pages of 4 KiB.
  const std::string prefix = node_.tree.is_v2() ? "" : "total_";
  tier().files["memory.stat"] += cat("\n", prefix, "workingset_refault_file 2048");
  EXPECT_FALSE(step());
  EXPECT_FALSE(step());
  EXPECT_EQ(node_.memory(kBestEffort), limit);
  clock_.pass(seconds{1});
  EXPECT_TRUE(step());
  EXPECT_NE(node_.memory(kBestEffort), limit);
}

/// The page cache that v1 has counted as clean is in use after all.
TEST_P(TierAboveItsRule, ARefusedCutIsLeftAndRetriedLater) {
  if (node_.tree.is_v2()) GTEST_SKIP() << "cgroup v2 refuses no limit";
  tier().usage = 1516 * kTierMi;
  find();
  let_reclaim(1000 * kTierMi);
  tier().reclaimable = 0;
  EXPECT_TRUE(step());
  expect_limit(1516 * kTierMi);
  EXPECT_EQ(convergence_.steps().pauses, 1U);
  EXPECT_FALSE(step());
  tier().reclaimable = 1000 * kTierMi;
  clock_.pass(seconds{1});
  // A quarter of 16 MiB, then more again.
  EXPECT_TRUE(step());
  expect_limit(1512 * kTierMi);
  EXPECT_TRUE(step());
  expect_limit(1504 * kTierMi);
}

/// One that would have reached the rule does not end the convergence.
TEST_P(TierAboveItsRule, ARefusedLastCutIsRetriedLater) {
  if (node_.tree.is_v2()) GTEST_SKIP() << "cgroup v2 refuses no limit";
  tier().usage = kRule + (8 * kTierMi);
  find();
  expect_limit(kRule + (24 * kTierMi));
  tier().usage = kRule + (10 * kTierMi);
  let_reclaim(100 * kTierMi);
  tier().reclaimable = 0;
  EXPECT_TRUE(step());
  expect_limit(kRule + (24 * kTierMi));
  EXPECT_THAT(convergence_.held(), SizeIs(1));
  EXPECT_EQ(convergence_.steps().lowered, 0U);
  tier().reclaimable = 100 * kTierMi;
  clock_.pass(seconds{1});
  EXPECT_TRUE(step());
  expect_limit(kRule + (6 * kTierMi));
  EXPECT_TRUE(step());
  expect_limit(kRule);
  EXPECT_THAT(convergence_.held(), IsEmpty());
}

/// enforceNodeAllocatable: the root of all pods.
TEST_P(TierAboveItsRule, TheRootComesDownToo) {
  cgroup::FakeTree::Cgroup& root = node_.tree.cgroups.at(kRootOfPods);
  root.usage = 1500 * kTierMi;
  tier().usage = 10 * kTierMi;
  node_.settings.system_reserved.memory = Bytes{1024 * kTierMi};
  ASSERT_TRUE(node_.reconcile());
  EXPECT_EQ(node_.memory(kRootOfPods), std::to_string(1516 * kTierMi));
  find();
  root.usage = 1000 * kTierMi;
  EXPECT_TRUE(step());
  EXPECT_EQ(node_.memory(kRootOfPods), std::to_string(1024 * kTierMi));
  EXPECT_THAT(convergence_.held(), IsEmpty());
}

TEST_P(TierAboveItsRule, WhatIsAtItsRuleIsLeftAlone) {
  tier().usage = 100 * kTierMi;
  ASSERT_TRUE(node_.reconcile());
  node_.changes.clear();
  find();
  EXPECT_THAT(convergence_.held(), IsEmpty());
  EXPECT_THAT(node_.changes, Each(Not(HasSubstr("memory."))));
}

}  // namespace
}  // namespace podqos::app
