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

TEST(PodRequests, SumsContainersExactlyBeforeRounding) {
  const auto sums = pod_requests(pod({container("a", cpu("0.4m")), container("b", cpu("0.4m"))}));
  EXPECT_EQ(sums, cpu("0.8m"));
}

TEST(PodRequests, TakesTheLargestInitContainerPerResource) {
  const auto sums =
      pod_requests(pod({container("a", list({{"cpu", "1"}, {"memory", "1Gi"}}))},
                       {init("i", cpu("3")), init("j", list({{"cpu", "2"}, {"memory", "2Gi"}}))}));
  EXPECT_EQ(sums, list({{"cpu", "3"}, {"memory", "2Gi"}}));
}

TEST(PodRequests, CountsASidecarBesideTheContainersAndBesideLaterInitContainers) {
  // Running: 1 + 2 + 4 = 7. Starting: 6 alone, then 9 beside the first sidecar = 11.
  const auto late_wins =
      pod({container("a", cpu("1"))}, {init("early", cpu("6")), sidecar("s", cpu("2")),
                                       init("late", cpu("9")), sidecar("t", cpu("4"))});
  EXPECT_EQ(pod_requests(late_wins), cpu("11"));
  // The same with 4 instead of 9: at most 6 while starting.
  const auto running_wins =
      pod({container("a", cpu("1"))}, {init("early", cpu("6")), sidecar("s", cpu("2")),
                                       init("late", cpu("4")), sidecar("t", cpu("4"))});
  EXPECT_EQ(pod_requests(running_wins), cpu("7"));
}

TEST(PodRequests, PodLevelOverwritesSupportedNamesEvenWithLess) {
  auto subject =
      pod({container("a", list({{"cpu", "2"}, {"memory", "1Gi"}, {"nvidia.com/gpu", "1"}}))});
  subject.resources =
      Resources{.requests = list({{"cpu", "0"}, {"hugepages-2Mi", "4Mi"}, {"nvidia.com/gpu", "7"}}),
                .limits = {}};
  EXPECT_EQ(
      pod_requests(subject),
      list({{"cpu", "0"}, {"memory", "1Gi"}, {"hugepages-2Mi", "4Mi"}, {"nvidia.com/gpu", "1"}}));
  EXPECT_EQ(sum_of_containers(subject).requests,
            list({{"cpu", "2"}, {"memory", "1Gi"}, {"nvidia.com/gpu", "1"}}));
}

TEST(PodRequests, OverheadAddsWhatIsMissing) {
  auto subject = pod({container("a", cpu("1"))});
  subject.overhead = list({{"cpu", "100m"}, {"memory", "120Mi"}});
  EXPECT_EQ(pod_requests(subject), list({{"cpu", "1.1"}, {"memory", "120Mi"}}));
  EXPECT_EQ(sum_of_containers(subject).requests, cpu("1"));
  // Asking twice gives the same: the pod itself is never changed.
  EXPECT_EQ(pod_requests(subject), list({{"cpu", "1.1"}, {"memory", "120Mi"}}));
}

TEST(PodLimits, OverheadIsAddedOnlyToALimitThatIsThere) {
  auto subject = pod({container("a", {}, list({{"cpu", "1"}, {"memory", "0"}}))});
  subject.overhead = list({{"cpu", "100m"}, {"memory", "120Mi"}, {"hugepages-2Mi", "2Mi"}});
  EXPECT_EQ(pod_limits(subject), list({{"cpu", "1.1"}, {"memory", "0"}}));
  EXPECT_EQ(sum_of_containers(subject).limits, list({{"cpu", "1"}, {"memory", "0"}}));
}

TEST(PodLimits, PodLevelOverwrites) {
  auto subject = pod({container("a", {}, cpu("4"))});
  subject.resources = Resources{.requests = {}, .limits = cpu("2")};
  EXPECT_EQ(pod_limits(subject), cpu("2"));
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

TEST(WithApiDefaults, AMissingRequestBecomesTheLimit) {
  const auto pod = with_api_defaults(
      pod_text::pod({container("a", list({{"cpu", "0"}}), list({{"cpu", "1"}, {"memory", "1Gi"}}))},
                    {sidecar("s", {}, list({{"nvidia.com/gpu", "1"}}))}));
  EXPECT_EQ(pod.containers[0].resources.requests, list({{"cpu", "0"}, {"memory", "1Gi"}}));
  EXPECT_EQ(pod.init_containers[0].resources.requests, list({{"nvidia.com/gpu", "1"}}));
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

Pod with_pod_level(Pod pod, Resources resources) {
  pod.resources = std::move(resources);
  return pod;
}

Pod with_status(Pod pod, QosClass qos_class) {
  pod.status_qos_class = qos_class;
  return pod;
}

Pod with_ephemeral(Pod pod) {
  pod.ephemeral_containers.push_back(
      container("debug", list({{"cpu", "1"}}), {}, ContainerKind::kEphemeral));
  return pod;
}

constexpr auto kNothing = "no cpu or memory is requested or limited by the containers";
constexpr auto kInFull = "cpu and memory are limited, and requested in full, by the containers";

TEST(Classify, GivesTheClassAndAReasonToCheck) {
  struct ClassCase {
    const char* name;
    Pod pod;
    QosClass qos_class;
    const char* reason;
  };
  for (const auto& row : std::vector<ClassCase>{
           {"NoContainers", pod({}), QosClass::kBestEffort, kNothing},
           {"NothingAsked", pod({container("a", {})}), QosClass::kBestEffort, kNothing},
           {"Full", pod({container("a", kFull, kFull)}), QosClass::kGuaranteed, kInFull},
           {"FullInOtherNotation",
            pod({container("a", list({{"cpu", "1000m"}, {"memory", "1Gi"}}),
                           list({{"cpu", "1"}, {"memory", "1073741824"}}))}),
            QosClass::kGuaranteed, kInFull},
           {"OneContainerWithoutMemoryLimit",
            pod({container("a", kFull, kFull),
                 container("b", list({{"cpu", "1"}}), list({{"cpu", "1"}}))}),
            QosClass::kBurstable, "container \"b\" has no memory limit"},
           {"InitContainersCount", pod({container("a", kFull, kFull)}, {init("setup", {})}),
            QosClass::kBurstable, "init container \"setup\" has no cpu limit"},
           {"SidecarsCount", pod({container("a", kFull, kFull)}, {sidecar("mesh", {})}),
            QosClass::kBurstable, "init container \"mesh\" has no cpu limit"},
           {"RequestBelowLimit",
            pod({container("a", list({{"cpu", "0.5"}, {"memory", "1Gi"}}), kFull)}),
            QosClass::kBurstable, "the cpu request of the containers is 0.5, the limit 1"},
           {"SumsDecide",
            pod({container("a", list({{"cpu", "2"}, {"memory", "1Gi"}}), kFull),
                 container("b", list({{"memory", "1Gi"}}), kFull)}),
            QosClass::kGuaranteed, kInFull},
           {"ZeroIsAbsent", pod({container("a", list({{"cpu", "0"}}), list({{"memory", "0"}}))}),
            QosClass::kBestEffort, kNothing},
           {"NegativeIsAbsent", pod({container("a", list({{"cpu", "-1"}}))}), QosClass::kBestEffort,
            kNothing},
           {"OtherResourcesNeverMatter",
            pod({container("a", list({{"hugepages-2Mi", "2Mi"}, {"nvidia.com/gpu", "1"}}))}),
            QosClass::kBestEffort, kNothing},
           {"EphemeralContainersNeverMatter", with_ephemeral(pod({container("a", {})})),
            QosClass::kBestEffort, kNothing},
           {"EmptyPodLevelHidesTheContainers",
            with_pod_level(pod({container("a", kFull, kFull)}), {}), QosClass::kBestEffort,
            "no cpu or memory is requested or limited by spec.resources"},
           {"PodLevelInFull", with_pod_level(pod({container("a", {})}), {kFull, kFull}),
            QosClass::kGuaranteed,
            "cpu and memory are limited, and requested in full, by spec.resources"},
           {"PodLevelRequestsOnly", with_pod_level(pod({container("a", {})}), {kFull, {}}),
            QosClass::kBurstable, "spec.resources has no cpu limit"},
           {"PodLevelMemoryOnly",
            with_pod_level(pod({container("a", {})}),
                           {list({{"memory", "1Gi"}}), list({{"memory", "1Gi"}})}),
            QosClass::kBurstable, "spec.resources has no cpu limit"},
           {"StatusWins", with_status(pod({container("a", kFull, kFull)}), QosClass::kBestEffort),
            QosClass::kBestEffort, "status.qosClass is BestEffort"}}) {
    SCOPED_TRACE(row.name);
    const auto verdict = classify(row.pod);
    EXPECT_EQ(verdict.qos_class, row.qos_class);
    EXPECT_EQ(verdict.reason, row.reason);
  }
}

TEST(ParseQosClass, TakesExactlyTheThreeWords) {
  EXPECT_EQ(parse_qos_class("Guaranteed"), QosClass::kGuaranteed);
  EXPECT_EQ(parse_qos_class("Burstable"), QosClass::kBurstable);
  EXPECT_EQ(parse_qos_class("BestEffort"), QosClass::kBestEffort);
  for (const auto* word : {"", "besteffort", "Guaranteed ", "Best"}) {
    EXPECT_EQ(parse_qos_class(word), std::nullopt) << word;
  }
}

}  // namespace
}  // namespace podqos::core
