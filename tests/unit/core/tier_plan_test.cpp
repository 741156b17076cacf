#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/events/tier_write.h"
#include "tests/unit/core/byte_units.h"
#include "tests/unit/core/layouts.h"

namespace podqos::core {
namespace {

using byte_units::kGi;
using byte_units::kMi;
using layouts::kV1;
using layouts::kV2;
using layouts::layout_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;
using ::testing::WithParamInterface;

/// Guaranteed pods request 750m and 1Gi, Burstable ones 250m and 2Gi, a kubelet's 4 CPUs and 1Gi.
TierSums requested_sums() {
  return {.guaranteed = {.pods = 1, .cpu = MilliCpu{750}, .memory = Bytes{kGi}},
          .burstable = {.pods = 2, .cpu = MilliCpu{250}, .memory = Bytes{2 * kGi}},
          .besteffort = {},
          .adopted = {.pods = 1, .cpu = MilliCpu{4000}, .memory = Bytes{kGi}}};
}

TEST(WantedTiers, ReserveMemoryOfWhatIsAllocatable) {
  Settings settings;
  settings.reserve_memory_percent = 50;
  settings.system_reserved.memory = Bytes{kGi};
  settings.kube_reserved.memory = Bytes{kGi};
  const TierValues tiers = wanted_tiers(requested_sums(), requested_sums(), settings,
                                        {.memory = Bytes{10 * kGi}, .cpu = MilliCpu{4000}});
  // Of 10Gi, 2Gi are reserved for the node, and 1Gi is an adopted pod's.
  EXPECT_EQ(tiers.burstable,
            (CgroupValues{.cpu_shares = CpuShares{256}, .memory_limit = Bytes{7 * kGi - kGi / 2}}));
  EXPECT_EQ(tiers.besteffort,
            (CgroupValues{.cpu_shares = CpuShares{2}, .memory_limit = Bytes{6 * kGi - kGi / 2}}));
}

TEST(WantedTiers, LimitNoMemoryWithoutQosReserved) {
  const TierValues tiers = wanted_tiers(requested_sums(), requested_sums(), {},
                                        {.memory = Bytes{10 * kGi}, .cpu = MilliCpu{4000}});
  EXPECT_EQ(tiers.burstable, CgroupValues{.cpu_shares = CpuShares{256}});
  EXPECT_EQ(tiers.besteffort, CgroupValues{.cpu_shares = CpuShares{2}});
}

// The pods of a node may be in two trees. The tiers of one compete with each other only; the node's
// memory is that of all.
TEST(WantedTiers, HaveSharesOfTheirTreeAndMemoryOfTheNode) {
  Settings settings;
  settings.reserve_memory_percent = 100;
  const TierSums tree{.guaranteed = {},
                      .burstable = {.pods = 1, .cpu = MilliCpu{100}, .memory = Bytes{kGi}},
                      .besteffort = {}};
  const TierValues tiers = wanted_tiers(tree, requested_sums(), settings,
                                        {.memory = Bytes{10 * kGi}, .cpu = MilliCpu{4000}});
  EXPECT_EQ(tiers.burstable,
            (CgroupValues{.cpu_shares = CpuShares{102}, .memory_limit = Bytes{8 * kGi}}));
  EXPECT_EQ(tiers.besteffort,
            (CgroupValues{.cpu_shares = CpuShares{2}, .memory_limit = Bytes{6 * kGi}}));
}

class DecideTierWrite : public ::testing::Test {
 protected:
  [[nodiscard]] TierValues decide(TreeState tree) const {
    return decide_tier_write(wanted_, tree, observed_, settings_);
  }

  TierValues wanted_{.burstable = {.cpu_shares = CpuShares{256}},
                     .besteffort = {.cpu_shares = CpuShares{2}}};
  Settings settings_;
  TierSnapshots observed_;
};

TEST_F(DecideTierWrite, WhatIsConstantIsNotWrittenAgain) {
  settings_.io_weight = {.guaranteed = {}, .burstable = 200, .besteffort = 10};
  observed_.burstable.has_io_weight = observed_.besteffort.has_io_weight = true;
  const TierValues values = decide(TreeState::kUnchanged);
  EXPECT_EQ(values.burstable, CgroupValues{.cpu_shares = CpuShares{256}});
  EXPECT_EQ(values.besteffort, CgroupValues{});
}

TEST_F(DecideTierWrite, TheRootsLimitStaysAboveItsUsage) {
  wanted_.root = {.memory_limit = Bytes{kGi}, .pids_limit = 100};
  observed_.root.usage = Bytes{2 * kGi};
  EXPECT_EQ(decide(TreeState::kUnchanged).root,
            (CgroupValues{.memory_limit = Bytes{2 * kGi + 16 * kMi}, .pids_limit = 100}));
  wanted_.root = {};
  EXPECT_EQ(decide(TreeState::kUnchanged).root, CgroupValues{});
  EXPECT_EQ(decide(TreeState::kMissing).root,
            (CgroupValues{.memory_limit = Bytes{-1}, .pids_limit = -1}));
}

struct TreeCase {
  const char* name;
  TreeState tree;
};

const std::vector<TreeCase>& every_tree() {
  static const std::vector<TreeCase> trees{{"AsItWas", TreeState::kUnchanged},
                                           {"ToMake", TreeState::kMissing},
                                           {"JustMade", TreeState::kFresh}};
  return trees;
}

std::string name_of_tree(const TestParamInfo<TreeCase>& row) {
  return row.param.name;
}

class DecideTierWriteOfAny : public DecideTierWrite, public WithParamInterface<TreeCase> {};

TEST_P(DecideTierWriteOfAny, TreeHoldsLimitsAboveUsageAndFloor) {
  settings_.tier_memory_floor = Bytes{32 * kMi};
  wanted_.burstable.memory_limit = Bytes{1'073'741'824};
  wanted_.besteffort.memory_limit = Bytes{0};
  observed_.burstable.usage = Bytes{2'147'483'648};
  const TierValues values = decide(GetParam().tree);
  // 16 MiB above the usage.
  EXPECT_EQ(values.burstable.memory_limit, Bytes{2'164'260'864});
  EXPECT_EQ(values.besteffort.memory_limit, Bytes{33'554'432});
}

INSTANTIATE_TEST_SUITE_P(All, DecideTierWriteOfAny, ValuesIn(every_tree()), name_of_tree);

TEST_F(DecideTierWrite, ANewTreeGetsAllValuesAndLosesLimits) {
  settings_.io_weight = {.guaranteed = 500, .burstable = 200, .besteffort = 10};
  for (const TreeState tree : {TreeState::kMissing, TreeState::kFresh}) {
    const TierValues values = decide(tree);
    EXPECT_EQ(
        values.burstable,
        (CgroupValues{.cpu_shares = CpuShares{256}, .memory_limit = Bytes{-1}, .io_weight = 200}));
    EXPECT_EQ(
        values.besteffort,
        (CgroupValues{.cpu_shares = CpuShares{2}, .memory_limit = Bytes{-1}, .io_weight = 10}));
  }
}

struct TierIoWeightCase {
  const char* name;
  TreeState tree;
  bool has_io_weight;
  std::optional<std::int64_t> want;
};

class DecideTierWriteResets : public DecideTierWrite,
                              public WithParamInterface<TierIoWeightCase> {};

/// Of the two tiers, only besteffort is to have a weight.
TEST_P(DecideTierWriteResets, AnIoWeightThatIsNoLongerWanted) {
  settings_.io_weight.besteffort = 10;
  observed_.burstable.has_io_weight = GetParam().has_io_weight;
  EXPECT_EQ(decide(GetParam().tree).burstable.io_weight, GetParam().want);
}

// 100 is the kernel's default.
INSTANTIATE_TEST_SUITE_P(All, DecideTierWriteResets,
                         ValuesIn(std::vector<TierIoWeightCase>{
                             {"AsItWas", TreeState::kUnchanged, true, {}},
                             {"JustMade", TreeState::kFresh, true, {}},
                             {"ToMakeWithOne", TreeState::kMissing, true, 100},
                             {"ToMakeWithout", TreeState::kMissing, false, {}},
                         }),
                         [](const TestParamInfo<TierIoWeightCase>& row) { return row.param.name; });

struct ExcessCase {
  const char* name;
  std::int64_t wanted;
  std::int64_t usage;
  std::int64_t excess;
};

class ExcessOfLimit : public TestWithParam<ExcessCase> {};

TEST_P(ExcessOfLimit, IsHowFarUsageAndMarginExceedTheRule) {
  Settings settings;
  settings.tier_memory_floor = Bytes{64 * kMi};
  EXPECT_EQ(excess_of_limit(Bytes{GetParam().wanted}, Bytes{GetParam().usage}, settings),
            Bytes{GetParam().excess});
}

INSTANTIATE_TEST_SUITE_P(All, ExcessOfLimit,
                         ValuesIn(std::vector<ExcessCase>{
                             {"FarBelow", kGi, 100 * kMi, 0},
                             {"AMarginBelow", kGi, kGi - 16 * kMi, 0},
                             {"WithinTheMargin", kGi, kGi - kMi, 15 * kMi},
                             {"Above", kGi, 2 * kGi, kGi + 16 * kMi},
                             {"TheFloorIsNoExcess", 0, 48 * kMi, 0},
                             {"AboveTheFloor", 0, 64 * kMi, 16 * kMi},
                         }),
                         [](const TestParamInfo<ExcessCase>& row) { return row.param.name; });

}  // namespace
}  // namespace podqos::core
