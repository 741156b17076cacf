#include "common/core/kubernetes/pod_resources.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_EQ(pod_requests(subject, PodLevel::kSkip),
            list({{"cpu", "2"}, {"memory", "1Gi"}, {"nvidia.com/gpu", "1"}}));
}

TEST(PodRequests, OverheadAddsWhatIsMissing) {
  auto subject = pod({container("a", cpu("1"))});
  subject.overhead = list({{"cpu", "100m"}, {"memory", "120Mi"}});
  EXPECT_EQ(pod_requests(subject), list({{"cpu", "1.1"}, {"memory", "120Mi"}}));
  EXPECT_EQ(pod_requests(subject, PodLevel::kInclude, Overhead::kSkip), cpu("1"));
  // Asking twice gives the same: the pod itself is never changed.
  EXPECT_EQ(pod_requests(subject), list({{"cpu", "1.1"}, {"memory", "120Mi"}}));
}

TEST(PodLimits, OverheadIsAddedOnlyToALimitThatIsThere) {
  auto subject = pod({container("a", {}, list({{"cpu", "1"}, {"memory", "0"}}))});
  subject.overhead = list({{"cpu", "100m"}, {"memory", "120Mi"}, {"hugepages-2Mi", "2Mi"}});
  EXPECT_EQ(pod_limits(subject), list({{"cpu", "1.1"}, {"memory", "0"}}));
  EXPECT_EQ(pod_limits(subject, PodLevel::kInclude, Overhead::kSkip),
            list({{"cpu", "1"}, {"memory", "0"}}));
}

TEST(PodLimits, PodLevelOverwrites) {
  auto subject = pod({container("a", {}, cpu("4"))});
  subject.resources = Resources{.requests = {}, .limits = cpu("2")};
  EXPECT_EQ(pod_limits(subject), cpu("2"));
}

struct DeclaredCase {
  const char* name;
  Pod pod;
  bool declared;
};

class LimitDeclared : public testing::TestWithParam<DeclaredCase> {};

TEST_P(LimitDeclared, FollowsEveryContainer) {
  EXPECT_EQ(limit_declared(GetParam().pod, kCpu), GetParam().declared);
  EXPECT_FALSE(GetParam().declared && limit_declared(GetParam().pod, kMemory));
}

Pod with_pod_limit(Pod pod, const char* text) {
  pod.resources = Resources{.requests = {}, .limits = cpu(text)};
  return pod;
}

const Container kLimited = container("a", {}, cpu("1"));

INSTANTIATE_TEST_SUITE_P(
    All, LimitDeclared,
    testing::Values(
        DeclaredCase{"AllLimited", pod({kLimited, container("b", {}, cpu("2"))}), true},
        DeclaredCase{"OneWithout", pod({kLimited, container("b", {})}), false},
        DeclaredCase{"OneWithZero", pod({kLimited, container("b", {}, cpu("0"))}), false},
        DeclaredCase{"InitWithout", pod({kLimited}, {init("i", {})}), false},
        DeclaredCase{"SidecarWithoutAtFirst", pod({kLimited}, {sidecar("s", {})}), false},
        DeclaredCase{"SidecarWithoutBehindOneWith",
                     pod({kLimited}, {sidecar("s", {}, cpu("1")), sidecar("t", {})}), true},
        DeclaredCase{"InitWithoutBehindASidecarWith",
                     pod({kLimited}, {sidecar("s", {}, cpu("1")), init("i", {})}), true},
        DeclaredCase{"PodLevelDeclares", with_pod_limit(pod({container("a", {})}), "1"), true},
        DeclaredCase{"PodLevelZeroDoesNot", with_pod_limit(pod({container("a", {})}), "0"), false}),
    [](const auto& row) { return row.param.name; });

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

struct PodLevelCase {
  const char* name;
  Resources given;
  Resources wanted;
};

class PodLevelDefaults : public testing::TestWithParam<PodLevelCase> {};

TEST_P(PodLevelDefaults, FollowTheContainersAndTheOwnLimits) {
  auto pod = pod_text::pod({container("a", list({{"cpu", "1"}, {"ephemeral-storage", "1Gi"}}),
                                      list({{"hugepages-2Mi", "4Mi"}})),
                            container("b", list({{"cpu", "500m"}}))});
  pod.overhead = list({{"cpu", "1"}});
  pod.resources = GetParam().given;
  EXPECT_EQ(with_api_defaults(pod).resources, GetParam().wanted);
}

INSTANTIATE_TEST_SUITE_P(
    All, PodLevelDefaults,
    testing::Values(
        PodLevelCase{"EmptyStaysEmpty", {}, {}},
        PodLevelCase{"RequestsAloneGetHugePageLimitsAndWhatFollows",
                     {list({{"memory", "1Gi"}}), {}},
                     {list({{"memory", "1Gi"}, {"cpu", "1.5"}, {"hugepages-2Mi", "4Mi"}}),
                      list({{"hugepages-2Mi", "4Mi"}})}},
        PodLevelCase{"AHugePageRequestKeepsTheLimitAway",
                     {list({{"hugepages-2Mi", "2Mi"}}), {}},
                     {list({{"hugepages-2Mi", "2Mi"}}), {}}},
        PodLevelCase{"LimitsGiveRequests",
                     {{}, list({{"cpu", "4"}, {"memory", "2Gi"}})},
                     {list({{"cpu", "1.5"}, {"memory", "2Gi"}, {"hugepages-2Mi", "4Mi"}}),
                      list({{"cpu", "4"}, {"memory", "2Gi"}, {"hugepages-2Mi", "4Mi"}})}},
        PodLevelCase{"UnsupportedLimitsGiveNone",
                     {list({{"cpu", "2"}}), list({{"nvidia.com/gpu", "1"}})},
                     {list({{"cpu", "2"}, {"hugepages-2Mi", "4Mi"}}),
                      list({{"nvidia.com/gpu", "1"}, {"hugepages-2Mi", "4Mi"}})}}),
    [](const auto& row) { return row.param.name; });

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

}  // namespace
}  // namespace podqos::core
