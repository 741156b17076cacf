// Memory limits that come down to their rule, on a machine in memory, on both cgroup versions.
#include "common/app/convergence.h"

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
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
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
  transaction.write_root_limits();
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

  /// A round, as converge().
  /// @return whether a limit was lowered
  bool step() {
    cgroup::FakeMachine machine{node_.tree, [this](const std::string& change) {
                                  unlocked_.push_back(change);
                                  return Status{};
                                }};
    round_ = reclaim(machine, rules(), clock_);
    if (round_.lowerable == 0) return false;
    Transaction transaction = node_.begin();
    const auto done = lower(transaction, round_);
    EXPECT_TRUE(done) << done.error().message;
    round_ = done.value_or(ConvergenceRound{});
    return round_.lowered != 0;
  }
  std::vector<core::LimitRule> rules() {
    return core::limit_rules(node_.begin().node(), node_.settings, node_.capacity);
  }

  FakeNode node_{GetParam()};
  LeapingClock clock_;
  ConvergenceRound round_;             ///< the last one
  std::vector<std::string> unlocked_;  ///< changes that were made without the lock
};

INSTANTIATE_TEST_SUITE_P(, TierAboveItsRule,
                         Values(core::CgroupVersion::kV1, core::CgroupVersion::kV2),
                         [](const TestParamInfo<core::CgroupVersion>& version) {
                           return version.param == core::CgroupVersion::kV1 ? "V1" : "V2";
                         });

TEST_P(TierAboveItsRule, ComesDownAtOnceWithItsUsage) {
  tier().usage = 1200 * kTierMi;
  EXPECT_TRUE(step());
  expect_limit(1216 * kTierMi);
  tier().usage = 100 * kTierMi;
  EXPECT_TRUE(step());
  expect_limit(kRule);
  EXPECT_EQ(round_.lowered, 1U);
  EXPECT_THAT(unlocked_, IsEmpty());
}

TEST_P(TierAboveItsRule, ComesDownByWhatTheKernelReclaims) {
  let_reclaim(1000 * kTierMi);
  int steps = 0;
  while (step())
    ++steps;
  EXPECT_LE(steps, node_.tree.is_v2() ? 20 : 35);
  expect_limit(kRule);
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
  let_reclaim(0);
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_FALSE(step());
    EXPECT_EQ(round_.pauses, 1U);
  }
  tier().usage = 100 * kTierMi;
  EXPECT_TRUE(step());
  EXPECT_EQ(round_.pauses, 0U);
  expect_limit(kRule);
}

TEST_P(TierAboveItsRule, PausesWhileItWaitsForMemory) {
  if (!node_.tree.is_v2()) GTEST_SKIP() << "cgroup v1 does not tell";
  const auto waits = [&](const char* percent) {
    tier().files["memory.pressure"] = cat("some avg10=", percent,
                                          " avg60=0.00 avg300=0.00 total=0\n"
                                          "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
  };
  let_reclaim(1000 * kTierMi);
  waits("11.00");
  EXPECT_FALSE(step());
  EXPECT_EQ(round_.pauses, 1U);
  EXPECT_THAT(unlocked_, IsEmpty());
  waits("10.00");
  EXPECT_TRUE(step());
  expect_limit(1452 * kTierMi);
}

/// The page cache that v1 has counted as clean is in use after all.
TEST_P(TierAboveItsRule, ARefusedCutIsLeftAndRetried) {
  if (node_.tree.is_v2()) GTEST_SKIP() << "cgroup v2 refuses no limit";
  tier().usage = kRule + (8 * kTierMi);
  EXPECT_TRUE(step());
  expect_limit(kRule + (24 * kTierMi));
  tier().usage = kRule + (10 * kTierMi);
  let_reclaim(100 * kTierMi);
  tier().reclaimable = 0;
  EXPECT_FALSE(step());
  EXPECT_EQ(round_.pauses, 1U);
  expect_limit(kRule + (24 * kTierMi));
  tier().reclaimable = 100 * kTierMi;
  EXPECT_TRUE(step());
  expect_limit(kRule);
}

/// enforceNodeAllocatable: the root of all pods.
TEST_P(TierAboveItsRule, TheRootComesDownToo) {
  cgroup::FakeTree::Cgroup& root = node_.tree.cgroups.at(kRootOfPods);
  root.usage = 1500 * kTierMi;
  tier().usage = 10 * kTierMi;
  node_.settings.system_reserved.memory = Bytes{1024 * kTierMi};
  ASSERT_TRUE(node_.reconcile());
  EXPECT_EQ(node_.memory(kRootOfPods), std::to_string(1516 * kTierMi));
  root.usage = 1000 * kTierMi;
  EXPECT_TRUE(step());
  EXPECT_EQ(node_.memory(kRootOfPods), std::to_string(1024 * kTierMi));
}

TEST_P(TierAboveItsRule, WhatIsAtItsRuleIsLeftAlone) {
  tier().usage = 100 * kTierMi;
  ASSERT_TRUE(node_.reconcile());
  expect_limit(kRule);
  node_.changes.clear();
  EXPECT_FALSE(step());
  EXPECT_EQ(round_.pauses, 0U);
  EXPECT_THAT(node_.changes, IsEmpty());
}

/// It is reported, and the others come down.
TEST_P(TierAboveItsRule, ARefusalConcernsOneLimit) {
  cgroup::FakeTree::Cgroup& root = node_.tree.cgroups.at(kRootOfPods);
  root.usage = 1500 * kTierMi;
  node_.settings.system_reserved.memory = Bytes{1024 * kTierMi};
  ASSERT_TRUE(node_.reconcile());
  root.usage = tier().usage = 10 * kTierMi;
  node_.refuses = [](const std::string& change) {
    return change.contains(cat(kBestEffort, "/memory."));
  };
  EXPECT_TRUE(step());
  EXPECT_EQ(round_.pauses, 1U);
  EXPECT_EQ(node_.memory(kRootOfPods), std::to_string(1024 * kTierMi));
  EXPECT_NE(node_.memory(kBestEffort), std::to_string(kRule));
}

}  // namespace
}  // namespace podqos::app
