#include "common/core/pods/counting.h"

#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace podqos::core {
namespace {

constexpr const char* kRoot = "/podqos/kubepods";
constexpr const char* kRootSlice = "/podqos.slice/podqos-kubepods.slice";

/// A node with a tree for each driver.
NodeState both_trees() {
  NodeState tiers;
  tiers.trees = {{.kubepods = kRoot}, {.kubepods = kRootSlice}};
  return tiers;
}

TEST(FindTree, IsTheOneAboveTheCgroup) {
  NodeState tiers = both_trees();
  EXPECT_EQ(find_tree(tiers, "/podqos/kubepods/burstable/pod42/c1"), &tiers.trees[0]);
  EXPECT_EQ(find_tree(tiers, "/podqos.slice/podqos-kubepods.slice/podqos-kubepods-pod42.slice"),
            &tiers.trees[1]);
  EXPECT_EQ(find_tree(tiers, "/podqos/kubepods2/pod42"), nullptr);
  EXPECT_EQ(find_tree(tiers, "/kubepods/pod42"), nullptr);
  EXPECT_EQ(tree_at(tiers, kRootSlice), &tiers.trees[1]);
  EXPECT_EQ(tree_at(tiers, "/podqos"), nullptr);
}

PodRow in_tree(const char* kubepods) {
  return {.uid = "42", .tree = tree_key(kubepods)};
}

TEST(HasPods, ThoseOfTheTreeCountNotThoseOfTheOther) {
  NodeState state = both_trees();
  state.rows = {in_tree(kRoot)};  // released, or not
  EXPECT_TRUE(has_pods(state, state.trees[0]));
  EXPECT_FALSE(has_pods(state, state.trees[1]));
  EXPECT_EQ(tree_in_use(state, Driver::kCgroupfs), &state.trees[0]);
  EXPECT_EQ(tree_in_use(state, Driver::kSystemd), nullptr);
}

TEST(HasPods, AKubeletsPodUsesNone) {
  NodeState state = both_trees();
  state.rows = {{.uid = "42", .kubelets_own = 1, .counts = 1}};
  EXPECT_FALSE(has_pods(state, state.trees[0]));
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

/// Burstable pod 42 in the tree of cgroupfs, which requests 2 CPUs and 900 bytes, of which 1 CPU
/// counts.
PodRecord pod42() {
  PodRecord record;
  record.pod.uid = "42";
  record.qos_class = QosClass::kBurstable;
  record.cgroup = "/podqos/kubepods/burstable/pod42";
  record.capped_request = sum(1, 2000, 900);
  record.counted_request = sum(1, 1000, 900);
  return record;
}

ContainerRecord recorded(ContainerState state, std::int64_t pid) {
  ContainerRecord out;
  out.id = "c1";
  out.state = state;
  out.pid = Pid{pid};
  out.start_time = StartTime{70};
  return out;
}

TEST(RowOf, HasWhatOthersNeedOfAPod) {
  PodRecord record = pod42();
  const PodRow plain{.uid = "42",
                     .tree = tree_key(kRoot),
                     .requested_cpu = MilliCpu{2000},
                     .requested_memory = Bytes{900},
                     .counted_cpu = MilliCpu{1000},
                     .counted_memory = Bytes{900},
                     .qos_class = QosClass::kBurstable,
                     .counts = 1};
  EXPECT_EQ(row_of(record), plain);
  record.released_at = BootSeconds{5};
  record.due = BootSeconds{9};
  PodRow released = plain;
  released.counts = 0;
  released.due = BootSeconds{9};
  EXPECT_EQ(row_of(record), released);
}

TEST(RowOf, HasTheCreatorOfAPendingContainer) {
  PodRecord record = pod42();
  record.containers = {recorded(ContainerState::kLive, 7), recorded(ContainerState::kPending, 8),
                       recorded(ContainerState::kPending, 9)};
  record.containers[1].pending_since = BootSeconds{3};
  const PodRow row = row_of(record);
  EXPECT_EQ(row.is_pending, 1);
  EXPECT_EQ(row.creator, (Process{.pid = Pid{8}, .start_time = StartTime{70}}));
  EXPECT_EQ(row.pending_since, BootSeconds{3});
}

TEST(RowOf, AKubeletsPodIsInNoTree) {
  PodRecord record = pod42();
  record.kubelets_own = true;
  EXPECT_EQ(row_of(record).tree, 0U);
}

/// BestEffort pods request nothing, whatever overhead they have.
TEST(RowOf, ABestEffortPodRequestsNothing) {
  PodRecord record = pod42();
  record.qos_class = QosClass::kBestEffort;
  EXPECT_EQ(row_of(record).requested_cpu, MilliCpu{0});
  EXPECT_EQ(row_of(record).requested_memory, Bytes{0});
}

NodeState with_rows(std::vector<PodRow> rows) {
  NodeState state = both_trees();
  state.rows = std::move(rows);
  sum_up(state);
  return state;
}

TEST(SumUp, CountsByClassAndTree) {
  PodRow burstable = row_of(pod42());
  PodRow guaranteed = burstable;
  guaranteed.qos_class = QosClass::kGuaranteed;
  guaranteed.tree = tree_key(kRootSlice);
  PodRow kubelets = burstable;
  kubelets.kubelets_own = 1;
  kubelets.tree = 0;
  PodRow released = burstable;
  released.counts = 0;
  const NodeState state = with_rows({burstable, guaranteed, burstable, kubelets, released});
  EXPECT_EQ(state.sums.burstable, sum(2, 2000, 1800));
  EXPECT_EQ(state.sums.guaranteed, sum(1, 1000, 900));
  EXPECT_EQ(state.sums.kubelets, sum(1, 1000, 900));
  EXPECT_EQ(state.sums.requested, sum(3, 6000, 2700));
  EXPECT_EQ(state.trees[0].sums.burstable, sum(2, 2000, 1800));
  EXPECT_EQ(state.trees[0].sums.guaranteed, TierSum{});
  EXPECT_EQ(state.trees[1].sums.guaranteed, sum(1, 1000, 900));
  EXPECT_EQ(state.trees[1].sums.requested, sum(1, 2000, 900));
}

/// Nor do damaged rows break anything.
TEST(SumUp, DoesNotOverflow) {
  PodRow large = row_of(pod42());
  large.counted_cpu = MilliCpu{kInt64Max};
  large.qos_class = static_cast<QosClass>(200);
  const NodeState state = with_rows({large, large});
  EXPECT_EQ(state.sums.besteffort, sum(2, kInt64Max, 1800));
}

TEST(SumsBeside, LeavesThePodOut) {
  PodRow other = row_of(pod42());
  other.uid = "43";
  const NodeState state = with_rows({row_of(pod42()), other});
  EXPECT_EQ(sums_beside(state, "42").burstable, sum(1, 1000, 900));
  EXPECT_EQ(sums_beside(state, "44"), state.sums);
}

}  // namespace
}  // namespace podqos::core
