#include <string>

#include <gtest/gtest.h>

#include "nri/messages.h"
#include "tests/unit/nri/oracle.h"

namespace podqos::nri {
namespace {

using test::adjustment_for;

TEST(Adjustment, NothingChangedIsNothingClaimed) {
  EXPECT_EQ(format_create_response({}), "");
}

// Field numbers: tests/unit/nri/nri.proto; a second plugin that sets the same field fails the
// container.
TEST(Adjustment, OnlyWhatIsSetIsClaimed) {
  const api::ContainerAdjustment placed = adjustment_for({.cgroups_path = "/kubepods/pod42/c1"});
  EXPECT_EQ(placed.linux().cgroups_path(), "/kubepods/pod42/c1");
  EXPECT_FALSE(placed.linux().has_resources());
  EXPECT_FALSE(placed.linux().has_oom_score_adj());

  const api::ContainerAdjustment quota =
      adjustment_for({.cpu_quota = Micros{50000}, .cpu_period = Micros{100000}});
  EXPECT_EQ(quota.linux().cgroups_path(), "");
  EXPECT_EQ(quota.linux().resources().cpu().quota().value(), 50000);
  EXPECT_EQ(quota.linux().resources().cpu().period().value(), 100000U);
  EXPECT_FALSE(quota.linux().resources().cpu().has_shares());
  EXPECT_FALSE(quota.linux().resources().has_memory());
}

TEST(Adjustment, AScoreOf0IsSet) {
  // A message that is there is set (NRI 0.7 and later).
  const api::ContainerAdjustment zero = adjustment_for({.oom_score_adj = 0});
  EXPECT_TRUE(zero.linux().has_oom_score_adj());
  EXPECT_EQ(zero.linux().oom_score_adj().value(), 0);
  EXPECT_FALSE(zero.linux().has_resources());
}

TEST(Adjustment, NumbersBelowZero) {
  const api::ContainerAdjustment all =
      adjustment_for({.cpu_quota = Micros{-1}, .pids_limit = -1, .oom_score_adj = -997});
  EXPECT_EQ(all.linux().resources().cpu().quota().value(), -1);
  EXPECT_EQ(all.linux().resources().pids().limit(), -1);
  EXPECT_EQ(all.linux().oom_score_adj().value(), -997);
}

TEST(Adjustment, EveryValue) {
  const api::ContainerAdjustment all = adjustment_for({.cpu_shares = CpuShares{102},
                                                       .memory_limit = Bytes{1 << 27},
                                                       .pids_limit = 64,
                                                       .hugepages = {{"2MB", Bytes{4 << 20}}},
                                                       .unified = {{"memory.swap.max", "0"}},
                                                       .oom_score_adj = 938});
  const api::LinuxResources& resources = all.linux().resources();
  EXPECT_EQ(resources.cpu().shares().value(), 102U);
  EXPECT_EQ(resources.memory().limit().value(), 1 << 27);
  EXPECT_EQ(resources.pids().limit(), 64);
  ASSERT_EQ(resources.hugepage_limits_size(), 1);
  EXPECT_EQ(resources.hugepage_limits(0).page_size(), "2MB");
  EXPECT_EQ(resources.hugepage_limits(0).limit(), 4U << 20U);
  ASSERT_EQ(resources.unified_size(), 1);
  EXPECT_EQ(resources.unified().at("memory.swap.max"), "0");
  EXPECT_EQ(all.linux().oom_score_adj().value(), 938);
}

}  // namespace
}  // namespace podqos::nri
