#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/events/tier_write.h"
#include "tests/unit/core/layouts.h"

namespace podqos::core {
namespace {

using layouts::kV1;
using layouts::kV2;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

struct ShareCase {
  const char* name;
  NodeCpu node;
  std::int64_t want;  ///< shares on cgroup v1
};

class RootShares : public TestWithParam<ShareCase> {};

TEST_P(RootShares, FollowAllocatableAndTheKubelet) {
  EXPECT_EQ(root_shares(GetParam().node, kV1, WeightFormula::kLog), CpuShares{GetParam().want});
}

NodeCpu node_of(std::int64_t allocatable, std::int64_t requested, std::int64_t kubelets = 0,
                std::optional<std::int64_t> kubelets_root = std::nullopt) {
  return {.allocatable = MilliCpu{allocatable},
          .requested = MilliCpu{requested},
          .kubelets = MilliCpu{kubelets},
          .kubelets_root = kubelets_root};
}

// Without a kubelet floor(C * 1024 / 1000) within [2, 262144]; else W * R / K.
INSTANTIATE_TEST_SUITE_P(
    All, RootShares,
    ValuesIn(std::vector<ShareCase>{
        {"OneCpuWithoutRequests", node_of(1000, 0), 1024},
        {"WhatIsReservedIsNotPods", node_of(3600, 100), 3686},
        {"CappedByTheKernel", node_of(300'000, 0), 262'144},
        {"NothingAllocatable", node_of(0, 0), 2},
        {"ByRequests", node_of(2000, 250, 500, 2048), 1024},
        {"TheKubeletsFirst", node_of(2000, 1800, 500, 2048), 6144},  // 1500 are free
        {"BestEffortCountsAHundredth", node_of(2000, 0, 500, 2048), 81},
        {"BestEffortBesideBestEffort", node_of(2000, 0, 0, 2048), 2048},
        {"KubeletWithoutRequests", node_of(2000, 250, 0, 2048), 25'600},
        {"KubeletHasAll", node_of(2000, 250, 2500, 2048), 16},
        {"ProportionAboveTheKernelsMost", node_of(2000, 2000, 0, 262'144), 262'144},
        {"ProportionBelowTheKernelsLeast", node_of(2000, 0, 2000, 2), 2},
    }),
    [](const TestParamInfo<ShareCase>& row) { return row.param.name; });

TEST(RootShares, KeepTheProportionOfWeightsOnV2) {
  // Weight 79 is 2 CPUs by the linear formula; half of it is 39.
  const NodeCpu node = node_of(2000, 250, 500, 79);
  EXPECT_EQ(root_shares(node, kV2, WeightFormula::kLinear), CpuShares{999});
  EXPECT_EQ(cpu_weight_for(root_shares(node, kV2, WeightFormula::kLog), WeightFormula::kLog),
            CpuWeight{39});
}

NodeCpu node_with(RootCpuWeight rule, std::int64_t reserved, std::optional<std::int64_t> system) {
  NodeCpu node = node_of(4000 - reserved, 250);
  node.rule = rule;
  node.reserved = MilliCpu{reserved};
  node.system = system;
  return node;
}

// system.slice : pods as reserved : allocatable.
TEST(RootShares, AreProportionalToWhatTheSystemHas) {
  const RootCpuWeight rule{.rule = RootCpuWeight::Rule::kProportional};
  EXPECT_EQ(root_shares(node_with(rule, 1000, 1024), kV1, WeightFormula::kLog), CpuShares{3072});
  const CpuShares on_v2 = root_shares(node_with(rule, 1000, 100), kV2, WeightFormula::kLinear);
  EXPECT_EQ(cpu_weight_for(on_v2, WeightFormula::kLinear), CpuWeight{300});
  // Without a reserve, or without that slice, as the kubelet.
  EXPECT_EQ(root_shares(node_with(rule, 0, 1024), kV1, WeightFormula::kLog), CpuShares{4096});
  EXPECT_EQ(root_shares(node_with(rule, 1000, std::nullopt), kV1, WeightFormula::kLog),
            CpuShares{3072});
  // Beside a kubelet's pods the requests of both count: 2048 * 250 / 500.
  NodeCpu beside = node_with(rule, 1000, 1024);
  beside.kubelets = MilliCpu{500};
  beside.kubelets_root = 2048;
  EXPECT_EQ(root_shares(beside, kV1, WeightFormula::kLog), CpuShares{1024});
}

TEST(RootShares, AreThoseOfAConfiguredWeight) {
  NodeCpu node = node_with({.rule = RootCpuWeight::Rule::kNumber, .weight = CpuWeight{39}}, 0, {});
  node.kubelets_root = 79;
  for (const auto formula : {WeightFormula::kLinear, WeightFormula::kLog})
    EXPECT_EQ(cpu_weight_for(root_shares(node, kV2, formula), formula), CpuWeight{39});
  // The fewest shares whose linear weight is 39: 2 + 38 * 262142 / 9999, rounded up.
  EXPECT_EQ(root_shares(node, kV1, WeightFormula::kLinear), CpuShares{999});
}

TEST(SharesForWeight, GivesTheWeightBack) {
  for (const auto formula : {WeightFormula::kLinear, WeightFormula::kLog}) {
    for (const std::int64_t weight : {1, 39, 79, 100, 1000, 10'000}) {
      EXPECT_EQ(cpu_weight_for(shares_for_weight(CpuWeight{weight}, formula), formula),
                CpuWeight{weight});
    }
  }
}

struct TreesCase {
  const char* name;
  std::int64_t first;   ///< millicpu requested in the first tree
  std::int64_t second;  ///< and in the second
  std::int64_t want_first;
  std::int64_t want_second;
};

class TreeShares : public TestWithParam<TreesCase> {};

TEST_P(TreeShares, DivideTheNodesByRequests) {
  const auto tree_of = [](const char* kubepods, std::int64_t cpu) {
    TreeRecord tree{.kubepods = kubepods};
    tree.sums.burstable = {.pods = 1, .cpu = MilliCpu{cpu}, .memory = {}};
    return tree;
  };
  TiersRecord tiers;
  tiers.trees = {tree_of("/podqos/kubepods", GetParam().first),
                 tree_of("/podqos.slice/podqos-kubepods.slice", GetParam().second)};
  const NodeCpu node = node_of(1000, GetParam().first + GetParam().second);
  EXPECT_EQ(tree_shares(node, tiers, tiers.trees[0], kV1, WeightFormula::kLog),
            CpuShares{GetParam().want_first});
  EXPECT_EQ(tree_shares(node, tiers, tiers.trees[1], kV1, WeightFormula::kLog),
            CpuShares{GetParam().want_second});
}

// Of 1024; a tree counts with 10m, a hundredth of the CPU, at least.
INSTANTIATE_TEST_SUITE_P(All, TreeShares,
                         ValuesIn(std::vector<TreesCase>{
                             {"ByRequests", 300, 100, 768, 256},
                             {"EquallyWithoutRequests", 0, 0, 512, 512},
                             {"NeverNothing", 990, 0, 1013, 10},
                         }),
                         [](const TestParamInfo<TreesCase>& row) { return row.param.name; });

}  // namespace
}  // namespace podqos::core
