#include "common/core/kubernetes/oom.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using namespace pod_text;

constexpr Bytes kMemoryOf8Gi{8LL << 30U};

int burstable_score(const Pod& pod, const Container& container) {
  return oom_score_adj(pod, QosClass::kBurstable, container, kMemoryOf8Gi);
}

TEST(OomScoreAdj, ClassesHaveFixedEnds) {
  const auto subject = pod({container("a", memory("4Gi"))});
  EXPECT_EQ(oom_score_adj(subject, QosClass::kGuaranteed, subject.containers[0], kMemoryOf8Gi),
            -997);
  EXPECT_EQ(oom_score_adj(subject, QosClass::kBestEffort, subject.containers[0], kMemoryOf8Gi),
            1000);
}

struct ScoreCase {
  const char* request;
  int score;
};

TEST(OomScoreAdj, BurstableFollowsTheOwnRequest) {
  for (const auto& [request, score] : {
           ScoreCase{"0", 999},
           // One byte below and at a thousandth of the node.
           ScoreCase{"8589934", 999},
           ScoreCase{"8589935", 999},
           ScoreCase{"17179870", 998},
           ScoreCase{"1Gi", 875},
           ScoreCase{"4Gi", 500},
           ScoreCase{"8Gi", 3},
           ScoreCase{"64Gi", 3},
           ScoreCase{"100m", 999},
       }) {
    const auto subject = pod({container("a", memory(request))});
    EXPECT_EQ(burstable_score(subject, subject.containers[0]), score) << request;
  }
}

TEST(OomScoreAdj, ANodeOfUnknownSizeMeansNothingIsKnown) {
  const auto subject = pod({container("a", memory("1Gi"))});
  EXPECT_EQ(oom_score_adj(subject, QosClass::kBurstable, subject.containers[0], Bytes{0}), 999);
  EXPECT_EQ(oom_score_adj(subject, QosClass::kBurstable, subject.containers[0], Bytes{-1}), 999);
}

TEST(OomScoreAdj, ASidecarNeverDiesBeforeTheContainers) {
  const auto subject = pod({container("a", memory("2Gi")), container("b", memory("1Gi"))},
                           {sidecar("s", memory("64Mi")), init("i", memory("64Mi"))});
  EXPECT_EQ(burstable_score(subject, subject.init_containers[0]), 875);
  EXPECT_EQ(burstable_score(subject, subject.init_containers[1]), 993);
}

TEST(OomScoreAdj, WhatThePodAsksBeyondItsContainersIsShared) {
  // 4Gi for the pod, 1Gi claimed: 3Gi over three containers (init included) is 1Gi each.
  auto subject = pod({container("a", memory("1Gi")), container("b", {})}, {init("i", {})});
  subject.resources = Resources{.requests = memory("4Gi"), .limits = {}};
  EXPECT_EQ(burstable_score(subject, subject.containers[0]), 750);
  EXPECT_EQ(burstable_score(subject, subject.containers[1]), 875);
  EXPECT_EQ(burstable_score(subject, subject.init_containers[0]), 875);
}

TEST(OomScoreAdj, ANegativeShareStaysInTheKernelsRange) {
  auto subject = pod({container("a", memory("4Gi")), container("b", {})});
  subject.resources = Resources{.requests = memory("1Gi"), .limits = {}};
  EXPECT_EQ(burstable_score(subject, subject.containers[1]), 1000);
}

TEST(NodeCritical, NeedsBothTheClassAndTheStanding) {
  struct CriticalCase {
    const char* name;
    bool is_static;
    std::optional<std::int64_t> priority;
    const char* priority_class;
    int score;
  };
  for (const auto& row : std::vector<CriticalCase>{
           {"Priority", false, 2'000'000'000, "system-node-critical", -997},
           {"Static", true, std::nullopt, "system-node-critical", -997},
           {"PriorityTooLow", false, 1'999'999'999, "system-node-critical", 875},
           {"ClusterCritical", false, 2'000'000'000, "system-cluster-critical", 875},
           {"StaticAlone", true, std::nullopt, "", 875}}) {
    SCOPED_TRACE(row.name);
    auto subject = pod({container("a", memory("1Gi"))});
    subject.is_static = row.is_static;
    subject.priority = row.priority;
    subject.priority_class_name = row.priority_class;
    EXPECT_EQ(burstable_score(subject, subject.containers[0]), row.score);
  }
}

}  // namespace
}  // namespace podqos::core
