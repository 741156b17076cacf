#include "common/core/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podqos::core {
namespace {

constexpr const char* kRoot = "/podqos/kubepods";
constexpr const char* kRootSlice = "/podqos.slice/podqos-kubepods.slice";

/// A node with a tree for each driver.
TiersRecord both_trees() {
  TiersRecord tiers;
  tiers.trees = {{.kubepods = kRoot}, {.kubepods = kRootSlice}};
  return tiers;
}

TEST(FindTree, IsTheOneAboveTheCgroup) {
  TiersRecord tiers = both_trees();
  EXPECT_EQ(find_tree(tiers, "/podqos/kubepods/burstable/pod42/c1"), &tiers.trees[0]);
  EXPECT_EQ(find_tree(tiers, "/podqos.slice/podqos-kubepods.slice/podqos-kubepods-pod42.slice"),
            &tiers.trees[1]);
  EXPECT_EQ(find_tree(tiers, "/podqos/kubepods2/pod42"), nullptr);
  EXPECT_EQ(find_tree(tiers, "/kubepods/pod42"), nullptr);
  EXPECT_EQ(tree_at(tiers, kRootSlice), &tiers.trees[1]);
  EXPECT_EQ(tree_at(tiers, "/podqos"), nullptr);
}

TEST(HasPods, ThoseOfTheTreeCountNotThoseOfTheOther) {
  TiersRecord tiers = both_trees();
  tiers.trees[0].sums.besteffort.pods = 1;
  EXPECT_TRUE(has_pods(tiers, tiers.trees[0]));
  EXPECT_FALSE(has_pods(tiers, tiers.trees[1]));
  EXPECT_EQ(tree_in_use(tiers, Driver::kCgroupfs), &tiers.trees[0]);
  EXPECT_EQ(tree_in_use(tiers, Driver::kSystemd), nullptr);
}

TEST(HasPods, ARetainedPodUsesItsTreeToo) {
  TiersRecord tiers = both_trees();
  tiers.retained = {{.uid = "42",
                     .until = UnixSeconds{9},
                     .cgroup = "/podqos.slice/podqos-kubepods.slice/podqos-kubepods-pod42.slice"}};
  EXPECT_FALSE(has_pods(tiers, tiers.trees[0]));
  EXPECT_TRUE(has_pods(tiers, tiers.trees[1]));
}

TEST(HasPods, AnAdoptedPodUsesNone) {
  TiersRecord tiers = both_trees();
  tiers.sums.adopted.pods = 1;
  EXPECT_FALSE(has_pods(tiers, tiers.trees[0]));
}

TEST(RootOfPod, IsAboveTheTier) {
  EXPECT_EQ(root_of_pod("/podqos/kubepods/burstable/pod42"), kRoot);
  EXPECT_EQ(root_of_pod("/podqos/kubepods/pod42"), kRoot);
  EXPECT_EQ(root_of_pod("/podqos.slice/podqos-kubepods.slice/podqos-kubepods-pod42.slice"),
            kRootSlice);
  EXPECT_EQ(root_of_pod("/podqos/kubepods"), std::nullopt);
}

TEST(CountTrees, SumsUpTheOwnPodsOfEach) {
  TiersRecord tiers = both_trees();
  tiers.trees[0].sums.guaranteed.pods = 7;
  PodRecord own;
  own.cgroup = "/podqos/kubepods/burstable/pod1";
  own.qos_class = QosClass::kBurstable;
  own.granted = {.pods = 1, .cpu = MilliCpu{100}, .memory = Bytes{5}};
  PodRecord adopted = own;
  adopted.adopted = true;
  count_trees(tiers, {{"1", own}, {"2", adopted}});
  EXPECT_EQ(tiers.trees[0].sums.guaranteed.pods, 7);
  EXPECT_EQ(tiers.trees[0].sums.burstable,
            (TierSum{.pods = 1, .cpu = MilliCpu{100}, .memory = Bytes{5}}));
  EXPECT_EQ(tiers.trees[1].sums, TierSums{});
}

}  // namespace
}  // namespace podqos::core
