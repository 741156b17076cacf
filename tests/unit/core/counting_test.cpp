#include "common/core/pods/counting.h"

#include <cstdint>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podqos::core {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

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

TEST(HasPods, APodToRevisitUsesItsTreeToo) {
  TiersRecord tiers = both_trees();
  tiers.revisits = {{.uid = "42",
                     .until = BootSeconds{9},
                     .cgroup = "/podqos.slice/podqos-kubepods.slice/podqos-kubepods-pod42.slice"}};
  EXPECT_FALSE(has_pods(tiers, tiers.trees[0]));
  EXPECT_TRUE(has_pods(tiers, tiers.trees[1]));
}

TEST(HasPods, AKubeletsPodUsesNone) {
  TiersRecord tiers = both_trees();
  tiers.sums.kubelets.pods = 1;
  EXPECT_FALSE(has_pods(tiers, tiers.trees[0]));
}

TEST(RootOfPod, IsAboveTheTier) {
  EXPECT_EQ(root_of_pod("/podqos/kubepods/burstable/pod42"), kRoot);
  EXPECT_EQ(root_of_pod("/podqos/kubepods/pod42"), kRoot);
  EXPECT_EQ(root_of_pod("/podqos.slice/podqos-kubepods.slice/podqos-kubepods-pod42.slice"),
            kRootSlice);
  EXPECT_EQ(root_of_pod("/podqos/kubepods"), std::nullopt);
}

TierSum sum(std::int64_t pods, std::int64_t milli_cpu, std::int64_t bytes) {
  return {.pods = pods, .cpu = MilliCpu{milli_cpu}, .memory = Bytes{bytes}};
}

TierSums of_burstable(TierSum burstable) {
  TierSums sums;
  sums.burstable = burstable;
  sums.requested.pods = burstable.pods;
  return sums;
}

/// Pod 42, whose requests count with this much.
PodRecord counted(QosClass qos_class, std::int64_t milli_cpu, std::int64_t bytes) {
  PodRecord record;
  record.pod.uid = "42";
  record.qos_class = qos_class;
  record.counted_request = sum(1, milli_cpu, bytes);
  return record;
}

ContainerRecord recorded(ContainerState state) {
  ContainerRecord out;
  out.id = "c1";
  out.bundle = "/b";
  out.state = state;
  out.pid = Pid{7};
  out.start_time = StartTime{70};
  return out;
}

TiersRecord with_burstable(TierSum burstable) {
  TiersRecord tiers;
  tiers.sums = of_burstable(burstable);
  return tiers;
}

TEST(AddPod, CountsInItsTierAndGoesAgain) {
  const PodRecord record = counted(QosClass::kBurstable, 1000, 900);
  TiersRecord tiers = with_burstable(sum(2, 10, 20));
  add_pod(tiers, record);
  EXPECT_EQ(tiers.sums, of_burstable(sum(3, 1010, 920)));
  remove_pod(tiers, record);
  EXPECT_EQ(tiers.sums, of_burstable(sum(2, 10, 20)));
}

TEST(AddPod, CountsAKubeletsPodsByThemselvesAndInNoTree) {
  PodRecord record = counted(QosClass::kBurstable, 1000, 900);
  record.cgroup = "/podqos/kubepods/burstable/pod1";
  record.kubelets_own = true;
  TiersRecord tiers = both_trees();
  add_pod(tiers, record);
  EXPECT_EQ(tiers.sums.kubelets, sum(1, 1000, 900));
  EXPECT_EQ(tiers.sums.burstable, TierSum{});
  // Sums never go below zero.
  remove_pod(tiers, record);
  remove_pod(tiers, record);
  EXPECT_EQ(tiers, both_trees());
}

/// Whatever of it counts. BestEffort pods request nothing, and a kubelet's are counted by
/// themselves.
TEST(AddPod, SumsUpWhatIsRequested) {
  PodRecord record = counted(QosClass::kGuaranteed, 1000, 0);
  record.capped_request = sum(1, 2000, 900);
  TiersRecord tiers;
  add_pod(tiers, record);
  record.qos_class = QosClass::kBurstable;
  add_pod(tiers, record);
  EXPECT_EQ(tiers.sums.requested, sum(2, 4000, 1800));
  EXPECT_EQ(tiers.sums.guaranteed, sum(1, 1000, 0));
  remove_pod(tiers, record);
  record.kubelets_own = true;
  add_pod(tiers, record);
  EXPECT_EQ(tiers.sums.requested, sum(1, 2000, 900));
  record.kubelets_own = false;
  record.qos_class = QosClass::kBestEffort;
  add_pod(tiers, record);
  EXPECT_EQ(tiers.sums.requested, sum(2, 2000, 900));
}

TEST(SumsBeside, LeavesThePodOut) {
  const TiersRecord tiers = with_burstable(sum(3, 1010, 920));
  EXPECT_EQ(sums_beside(tiers, counted(QosClass::kBurstable, 1000, 900)),
            of_burstable(sum(2, 10, 20)));
  EXPECT_EQ(sums_beside(tiers, std::nullopt), tiers.sums);
  // It has left them.
  PodRecord released = counted(QosClass::kBurstable, 1000, 900);
  released.released_at = BootSeconds{5};
  EXPECT_EQ(sums_beside(tiers, released), tiers.sums);
}

TEST(RemovePod, TakesNothingFromSumsThatLackThePod) {
  TiersRecord tiers = with_burstable(sum(2, 1000, 900));
  tiers.uncounted = {"41", "42"};
  const PodRecord record = counted(QosClass::kBurstable, 500, 80);
  EXPECT_EQ(sums_beside(tiers, record), tiers.sums);
  remove_pod(tiers, record);
  EXPECT_EQ(tiers.sums, of_burstable(sum(2, 1000, 900)));
  add_pod(tiers, record);
  remove_pod(tiers, record);
  EXPECT_EQ(tiers.sums, of_burstable(sum(2, 1000, 900)));
  EXPECT_THAT(tiers.uncounted, ElementsAre("41"));
}

TEST(CountPod, ReplacesThePodAndForgetsItsRevisit) {
  TiersRecord tiers = with_burstable(sum(3, 1010, 920));
  note_revisit(tiers, {.uid = "42", .until = BootSeconds{9}});
  note_revisit(tiers, {.uid = "43", .until = BootSeconds{9}});
  count_pod(tiers, counted(QosClass::kBurstable, 500, 80),
            counted(QosClass::kBurstable, 1000, 900));
  EXPECT_EQ(tiers.sums, of_burstable(sum(3, 510, 100)));
  EXPECT_THAT(tiers.revisits, ElementsAre(Revisit{.uid = "43", .until = BootSeconds{9}}));
}

// The node's sums are those of all trees; a kubelet's pods are in none.
TEST(CountPod, CountsInTheTreeOfThePodsCgroup) {
  TiersRecord tiers = both_trees();
  PodRecord record = counted(QosClass::kBurstable, 1000, 900);
  record.cgroup =
      "/podqos.slice/podqos-kubepods.slice/podqos-kubepods-burstable.slice/"
      "podqos-kubepods-burstable-pod42.slice";
  count_pod(tiers, record, std::nullopt);
  EXPECT_EQ(tiers.sums, of_burstable(sum(1, 1000, 900)));
  EXPECT_EQ(tiers.trees[0].sums, TierSums{});
  EXPECT_EQ(tiers.trees[1].sums, of_burstable(sum(1, 1000, 900)));
  remove_pod(tiers, record);
  EXPECT_EQ(tiers.sums, of_burstable({}));
  EXPECT_EQ(tiers.trees[1].sums, of_burstable({}));
  record.kubelets_own = true;
  count_pod(tiers, record, std::nullopt);
  EXPECT_EQ(tiers.sums.kubelets, sum(1, 1000, 900));
  EXPECT_EQ(tiers.trees[1].sums, of_burstable({}));
}

TEST(NotePending, ListsAContainerUntilItIsLive) {
  TiersRecord tiers;
  const PodRecord record = counted(QosClass::kBurstable, 1000, 900);
  const PendingEntry entry{
      .uid = "42", .id = "c1", .bundle = "/b", .pid = Pid{7}, .start_time = StartTime{70}};
  note_pending(tiers, record, recorded(ContainerState::kPending));
  note_pending(tiers, record, recorded(ContainerState::kPending));
  EXPECT_THAT(tiers.pending, ElementsAre(entry));
  note_pending(tiers, record, recorded(ContainerState::kLive));
  EXPECT_THAT(tiers.pending, IsEmpty());
}

TEST(ForgetPending, KeepsAContainerOfAnotherBundleOrPod) {
  TiersRecord tiers;
  const PodRecord record = counted(QosClass::kBurstable, 1000, 900);
  note_pending(tiers, record, recorded(ContainerState::kPending));
  forget_pending(tiers, "42", {.id = "c1", .bundle = "/other"});
  forget_pending(tiers, "43", {.id = "c1", .bundle = "/b"});
  EXPECT_EQ(tiers.pending.size(), 1U);
  forget_pending(tiers, "42", {.id = "c1", .bundle = "/b"});
  EXPECT_THAT(tiers.pending, IsEmpty());
}

TEST(NoteRevisit, ChangesTheTimeOfOneThatIsNoted) {
  TiersRecord tiers;
  note_revisit(tiers, {.uid = "42", .until = BootSeconds{9}});
  note_revisit(tiers, {.uid = "42", .until = BootSeconds{12}});
  EXPECT_THAT(tiers.revisits, ElementsAre(Revisit{.uid = "42", .until = BootSeconds{12}}));
  forget_revisit(tiers, "42");
  EXPECT_THAT(tiers.revisits, IsEmpty());
}

}  // namespace
}  // namespace podqos::core
