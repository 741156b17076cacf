// The CPU shares of all pods beside the system's and a kubelet's.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/core/events/cgroup_write.h"
#include "tests/unit/core/layouts.h"

namespace podqos::core {
namespace {

using layouts::kV1;
using layouts::kV2;

/// Of the only tree.
CpuShares root_shares(const NodeCpu& node, CgroupVersion version, WeightFormula formula) {
  return tree_shares(node, {}, {}, version, formula);
}

NodeCpu node_of(std::int64_t allocatable, std::int64_t requested, std::int64_t kubelets = 0,
                std::optional<std::int64_t> kubelets_root = std::nullopt) {
  return {.allocatable = MilliCpu{allocatable},
          .requested = MilliCpu{requested},
          .kubelets = MilliCpu{kubelets},
          .kubelets_root = kubelets_root};
}

// Without a kubelet floor(C * 1024 / 1000) within [2, 262144]; else what both keep, and half of
// what is free for each.
TEST(RootShares, FollowAllocatableAndTheKubelet) {
  struct ShareCase {
    const char* name;
    NodeCpu node;
    std::int64_t want;  ///< shares on cgroup v1
  };
  for (const auto& row : std::vector<ShareCase>{
           {"OneCpuWithoutRequests", node_of(1000, 0), 1024},
           {"WhatIsReservedIsNotPods", node_of(3600, 100), 3686},
           {"CappedByTheKernel", node_of(300'000, 0), 262'144},
           {"NothingAllocatable", node_of(0, 0), 2},
           {"ByRequests", node_of(2000, 250, 500, 2048), 1592},                   // 875 : 1125
           {"TheKubeletsFirst", node_of(2000, 1800, 500, 2048), 6144},            // 1500 are left
           {"BestEffortHasHalfOfWhatIsFree", node_of(2000, 0, 500, 2048), 1228},  // 750 : 1250
           {"BestEffortBesideBestEffort", node_of(2000, 0, 0, 2048), 2048},
           {"KubeletWithoutRequests", node_of(2000, 250, 0, 2048), 2633},  // 1125 : 875
           {"BoundedByFour", node_of(2000, 2000, 0, 2048), 8192},
           {"KubeletHasAll", node_of(2000, 250, 2500, 2048), 2},
           {"ProportionAboveTheKernelsMost", node_of(2000, 2000, 0, 262'144), 262'144},
           {"ProportionBelowTheKernelsLeast", node_of(2000, 0, 2000, 2), 2},
       }) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(root_shares(row.node, kV1, WeightFormula::kLog), CpuShares{row.want});
  }
}

// With cgroupRoot "/" the root of the pods has it, and below what others have made none.
TEST(CgroupsWithShare, AreThoseAboveTheRootThatPodqosHasMade) {
  using Paths = std::vector<std::string>;
  EXPECT_EQ(cgroups_with_share({.kubepods = "/kubepods"}), Paths{"/kubepods"});
  EXPECT_EQ(cgroups_with_share({.kubepods = "/podqos/kubepods", .top = "/podqos"}),
            Paths{"/podqos"});
  EXPECT_EQ(cgroups_with_share({.kubepods = "/others/kubepods"}), Paths{});
}

// One CPU, whose kubelet has weight 39, and eight with 313.
TEST(RootShares, KeepTheProportionOfWeightsOnV2) {
  struct WeightCase {
    std::int64_t allocatable, requested, kubelets, root, want;
  };
  for (const auto& row : std::vector<WeightCase>{
           {1000, 0, 0, 39, 39},
           {1000, 500, 0, 39, 117},
           {1000, 500, 300, 39, 58},
           {1000, 1000, 0, 39, 156},
           {1000, 1000, 300, 39, 91},
           {1000, 100, 900, 39, 4},
           {1000, 100, 1200, 39, 1},
           {8000, 0, 0, 313, 313},
           {8000, 1000, 2000, 313, 243},
           {8000, 4000, 0, 313, 939},
           {8000, 8000, 0, 313, 1252},
       }) {
    SCOPED_TRACE(row.want);
    const NodeCpu node = node_of(row.allocatable, row.requested, row.kubelets, row.root);
    for (const auto formula : {WeightFormula::kLinear, WeightFormula::kLog})
      EXPECT_EQ(cpu_weight_for(root_shares(node, kV2, formula), formula), CpuWeight{row.want});
  }
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
  // Beside a kubelet's pods the requests of both count: 2048 * 1375 / 1625 of 3000.
  NodeCpu beside = node_with(rule, 1000, 1024);
  beside.kubelets = MilliCpu{500};
  beside.kubelets_root = 2048;
  EXPECT_EQ(root_shares(beside, kV1, WeightFormula::kLog), CpuShares{1732});
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

// Of 1024; a tree counts with 10m, a hundredth of the CPU, at least.
TEST(TreeShares, DivideTheNodesByRequests) {
  struct TreesCase {
    const char* name;
    std::int64_t first;   ///< millicpu requested in the first tree
    std::int64_t second;  ///< and in the second
    std::int64_t want_first;
    std::int64_t want_second;
  };
  for (const auto& row : std::vector<TreesCase>{
           {"ByRequests", 300, 100, 768, 256},
           {"EquallyWithoutRequests", 0, 0, 512, 512},
           {"NeverNothing", 990, 0, 1013, 10},
       }) {
    SCOPED_TRACE(row.name);
    const auto tree_of = [](const char* kubepods, std::int64_t cpu) {
      TreeRecord tree{.kubepods = kubepods};
      tree.sums.burstable = {.pods = 1, .cpu = MilliCpu{cpu}, .memory = {}};
      return tree;
    };
    NodeState tiers;
    tiers.trees = {tree_of("/podqos/kubepods", row.first),
                   tree_of("/podqos.slice/podqos-kubepods.slice", row.second)};
    const NodeCpu node = node_of(1000, row.first + row.second);
    EXPECT_EQ(tree_shares(node, tiers, tiers.trees[0], kV1, WeightFormula::kLog),
              CpuShares{row.want_first});
    EXPECT_EQ(tree_shares(node, tiers, tiers.trees[1], kV1, WeightFormula::kLog),
              CpuShares{row.want_second});
  }
}

}  // namespace
}  // namespace podqos::core
