#include "common/core/kubernetes/pod_resources.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/kubernetes/qos.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using namespace pod_text;

ResourceList cpu(const char* text) {
  return list({{"cpu", text}});
}

TEST(PodLimits, OverheadIsAddedOnlyToALimitThatIsThere) {
  auto subject = pod({container("a", {}, list({{"cpu", "1"}, {"memory", "0"}}))});
  subject.overhead = list({{"cpu", "100m"}, {"memory", "120Mi"}, {"hugepages-2Mi", "2Mi"}});
  EXPECT_EQ(pod_limits(subject), list({{"cpu", "1.1"}, {"memory", "0"}}));
  EXPECT_EQ(sum_of_containers(subject).limits, list({{"cpu", "1"}, {"memory", "0"}}));
}

Pod with_pod_limit(Pod pod, const char* text) {
  pod.resources = Resources{.requests = {}, .limits = cpu(text)};
  return pod;
}

const Container kLimited = container("a", {}, cpu("1"));

TEST(LimitDeclared, FollowsEveryContainer) {
  struct DeclaredCase {
    const char* name;
    Pod pod;
    bool declared;
  };
  for (const auto& row : std::vector<DeclaredCase>{
           {"AllLimited", pod({kLimited, container("b", {}, cpu("2"))}), true},
           {"OneWithout", pod({kLimited, container("b", {})}), false},
           {"OneWithZero", pod({kLimited, container("b", {}, cpu("0"))}), false},
           {"InitWithout", pod({kLimited}, {init("i", {})}), false},
           {"SidecarWithoutAtFirst", pod({kLimited}, {sidecar("s", {})}), false},
           {"SidecarWithoutBehindOneWith",
            pod({kLimited}, {sidecar("s", {}, cpu("1")), sidecar("t", {})}), true},
           {"InitWithoutBehindASidecarWith",
            pod({kLimited}, {sidecar("s", {}, cpu("1")), init("i", {})}), true},
           {"PodLevelDeclares", with_pod_limit(pod({container("a", {})}), "1"), true},
           {"PodLevelZeroDoesNot", with_pod_limit(pod({container("a", {})}), "0"), false}}) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(limit_declared(row.pod, kCpu), row.declared);
    EXPECT_FALSE(row.declared && limit_declared(row.pod, kMemory));
  }
}

TEST(PodRequests, TakesCpuMemoryAndHugePagesFromThePodLevel) {
  Pod pod;
  pod.resources.emplace();
  for (const auto* name : {"cpu", "memory", "hugepages-2Mi", "hugepages-", "ephemeral-storage",
                           "nvidia.com/gpu", "cpus", ""})
    pod.resources->requests.emplace(name, Quantity::from_units(1));
  std::vector<std::string> counted;
  for (const auto& [name, quantity] : pod_requests(pod))
    counted.push_back(name);
  EXPECT_THAT(counted, ::testing::ElementsAre("cpu", "hugepages-", "hugepages-2Mi", "memory"));
}

TEST(WithApiDefaults, EphemeralContainersGetNone) {
  Pod pod;
  pod.ephemeral_containers.push_back(
      container("debug", {}, list({{"cpu", "1"}}), ContainerKind::kEphemeral));
  EXPECT_TRUE(with_api_defaults(pod).ephemeral_containers[0].resources.requests.empty());
}

TEST(WithApiDefaults, RoundsEveryQuantityUpToMilli) {
  auto pod = pod_text::pod({container("a", list({{"cpu", "100u"}}))});
  pod.overhead = list({{"memory", "0.0001"}});
  pod.resources = Resources{.requests = list({{"cpu", "0.0011"}}), .limits = {}};
  const auto defaulted = with_api_defaults(pod);
  EXPECT_EQ(defaulted.containers[0].resources.requests, list({{"cpu", "1m"}}));
  EXPECT_EQ(defaulted.overhead, list({{"memory", "1m"}}));
  EXPECT_EQ(defaulted.resources->requests, list({{"cpu", "2m"}}));
}

TEST(PodLevelDefaults, FollowTheContainersAndTheOwnLimits) {
  struct PodLevelCase {
    const char* name;
    Resources given;
    Resources wanted;
  };
  for (const auto& row : std::vector<PodLevelCase>{
           {"EmptyStaysEmpty", {}, {}},
           {"RequestsAloneGetHugePageLimitsAndWhatFollows",
            {list({{"memory", "1Gi"}}), {}},
            {list({{"memory", "1Gi"}, {"cpu", "1.5"}, {"hugepages-2Mi", "4Mi"}}),
             list({{"hugepages-2Mi", "4Mi"}})}},
           {"AHugePageRequestKeepsTheLimitAway",
            {list({{"hugepages-2Mi", "2Mi"}}), {}},
            {list({{"hugepages-2Mi", "2Mi"}}), {}}},
           {"LimitsGiveRequests",
            {{}, list({{"cpu", "4"}, {"memory", "2Gi"}})},
            {list({{"cpu", "1.5"}, {"memory", "2Gi"}, {"hugepages-2Mi", "4Mi"}}),
             list({{"cpu", "4"}, {"memory", "2Gi"}, {"hugepages-2Mi", "4Mi"}})}},
           {"UnsupportedLimitsGiveNone",
            {list({{"cpu", "2"}}), list({{"nvidia.com/gpu", "1"}})},
            {list({{"cpu", "2"}, {"hugepages-2Mi", "4Mi"}}),
             list({{"nvidia.com/gpu", "1"}, {"hugepages-2Mi", "4Mi"}})}}}) {
    SCOPED_TRACE(row.name);
    auto pod = pod_text::pod({container("a", list({{"cpu", "1"}, {"ephemeral-storage", "1Gi"}}),
                                        list({{"hugepages-2Mi", "4Mi"}})),
                              container("b", list({{"cpu", "500m"}}))});
    pod.overhead = list({{"cpu", "1"}});
    pod.resources = row.given;
    EXPECT_EQ(with_api_defaults(pod).resources, row.wanted);
  }
}

TEST(WithApiDefaults, IsIdempotent) {
  auto pod = pod_text::pod({container("a", {}, list({{"cpu", "0.0004"}}))});
  pod.resources = Resources{.requests = {}, .limits = list({{"memory", "1Gi"}})};
  const auto once = with_api_defaults(pod);
  EXPECT_EQ(with_api_defaults(once), once);
}

// pkg/apis/scheduling: SystemCriticalPriority is 2 * HighestUserDefinablePriority.
TEST(WithPriorityOfClass, FillsInWhatEveryClusterHas) {
  const auto priority_of = [](const char* name, std::optional<std::int64_t> priority = {}) {
    Pod pod;
    pod.priority_class_name = name;
    pod.priority = priority;
    return with_priority_of_class(std::move(pod)).priority;
  };
  EXPECT_EQ(priority_of("system-node-critical"), 2'000'001'000);
  EXPECT_EQ(priority_of("system-cluster-critical"), 2'000'000'000);
  EXPECT_EQ(priority_of("high"), std::nullopt);
  EXPECT_EQ(priority_of(""), std::nullopt);
  EXPECT_EQ(priority_of("system-node-critical", 7), 7);
}

const ResourceList kFull = list({{"cpu", "1"}, {"memory", "1Gi"}});

Pod with_pod_level(Resources resources) {
  Pod out = pod({container("a", kFull, kFull)});
  out.resources = std::move(resources);
  return out;
}

Pod with_status(QosClass qos_class) {
  Pod out = pod({container("a", kFull, kFull)});
  out.status_qos_class = qos_class;
  return out;
}

// Classes and scores themselves are compared with Kubernetes' own (pods_vectors_test.cpp).
TEST(Classify, GivesAReasonToCheck) {
  struct ClassCase {
    Pod pod;
    QosClass qos_class;
    const char* reason;
  };
  for (const auto& row : std::vector<ClassCase>{
           {pod({container("a", {})}), QosClass::kBestEffort,
            "no cpu or memory is requested or limited by the containers"},
           {pod({container("a", kFull, kFull)}), QosClass::kGuaranteed,
            "cpu and memory are limited, and requested in full, by the containers"},
           {pod({container("a", kFull, kFull),
                 container("b", list({{"cpu", "1"}}), list({{"cpu", "1"}}))}),
            QosClass::kBurstable, "container \"b\" has no memory limit"},
           {pod({container("a", kFull, kFull)}, {init("setup", {})}), QosClass::kBurstable,
            "init container \"setup\" has no cpu limit"},
           {pod({container("a", list({{"cpu", "0.5"}, {"memory", "1Gi"}}), kFull)}),
            QosClass::kBurstable, "cpu request 500m differs from limit 1 of the containers"},
           {with_pod_level({}), QosClass::kBestEffort,
            "no cpu or memory is requested or limited by spec.resources"},
           {with_pod_level({kFull, kFull}), QosClass::kGuaranteed,
            "cpu and memory are limited, and requested in full, by spec.resources"},
           {with_pod_level({kFull, {}}), QosClass::kBurstable, "spec.resources has no cpu limit"},
           {with_status(QosClass::kBestEffort), QosClass::kBestEffort,
            "status.qosClass is BestEffort"}}) {
    SCOPED_TRACE(row.reason);
    const auto verdict = classify(row.pod);
    EXPECT_EQ(verdict.qos_class, row.qos_class);
    EXPECT_EQ(verdict.reason, row.reason);
  }
}

// Neither is in Kubernetes' answers.
TEST(Classify, CountsNeitherNegativeAmountsNorEphemeralContainers) {
  Pod subject = pod({container("a", list({{"cpu", "-1"}}))});
  subject.ephemeral_containers = {container("debug", kFull, {}, ContainerKind::kEphemeral)};
  EXPECT_EQ(classify(subject).qos_class, QosClass::kBestEffort);
}

TEST(ParseQosClass, TakesExactlyTheThreeWords) {
  EXPECT_EQ(parse_qos_class("Guaranteed"), QosClass::kGuaranteed);
  EXPECT_EQ(parse_qos_class("Burstable"), QosClass::kBurstable);
  EXPECT_EQ(parse_qos_class("BestEffort"), QosClass::kBestEffort);
  for (const auto* word : {"", "besteffort", "Guaranteed ", "Best"}) {
    EXPECT_EQ(parse_qos_class(word), std::nullopt) << word;
  }
}

int burstable_score(const Pod& pod, const Container& container, Bytes node = Bytes{8LL << 30U}) {
  return oom_score_adj(pod, QosClass::kBurstable, container, node);
}

// pkg/kubelet/qos/policy.go: (pod-level request - the containers' requests) / number of containers;
// 0 without a pod-level memory request.
TEST(OomClaim, SharesThePodLevelRequestAmongAllContainers) {
  struct ShareCase {
    const char* name;
    Pod pod;
    ResourceList pod_level;
    std::int64_t share;
  };
  const auto one = pod({container("a", memory("400"))});
  for (auto& row : std::vector<ShareCase>{
           {"One", one, memory("1000"), 600},
           {"OneByte", pod({container("a", {})}), memory("1"), 1},
           {"InitContainersToo",
            pod({container("a", memory("100")), container("b", memory("100"))},
                {init("i", memory("50"))}),
            memory("1000"), 266},
           {"Negative", one, memory("100"), -300},
           {"NoMemoryAtPodLevel", one, cpu("1"), 0},
       }) {
    SCOPED_TRACE(row.name);
    row.pod.resources = Resources{.requests = row.pod_level, .limits = {}};
    EXPECT_EQ(oom_claim(row.pod, row.pod.containers[0], Bytes{1 << 20}).share, row.share);
  }
}

// Only a lower score than its own is another container's.
TEST(OomClaim, OfASidecarIsItsOwnIfTheLeastIsNoHigher) {
  const auto subject = pod({container("a", memory("200")), container("b", memory("100"))},
                           {sidecar("least", memory("99")), sidecar("same", memory("100"))});
  const Bytes node{1000};
  EXPECT_TRUE(oom_claim(subject, subject.init_containers[0], node).of_least);
  EXPECT_FALSE(oom_claim(subject, subject.init_containers[1], node).of_least);
}

TEST(OomScoreAdj, ANodeOfUnknownSizeMeansNothingIsKnown) {
  const auto subject = pod({container("a", memory("1Gi"))});
  EXPECT_EQ(burstable_score(subject, subject.containers[0], Bytes{0}), 999);
  EXPECT_EQ(burstable_score(subject, subject.containers[0], Bytes{-1}), 999);
  const auto byte = pod({container("a", memory("1"))});
  EXPECT_EQ(burstable_score(byte, byte.containers[0], Bytes{1}), 3);
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
