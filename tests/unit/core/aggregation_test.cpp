#include <gtest/gtest.h>

#include "common/core/pod_resources.h"
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

TEST(IsSupportedPodLevelResource, NamesCpuMemoryAndHugePages) {
  for (const auto* name : {"cpu", "memory", "hugepages-2Mi"}) {
    EXPECT_TRUE(is_supported_pod_level_resource(name)) << name;
  }
  for (const auto* name : {"ephemeral-storage", "nvidia.com/gpu", "cpus", ""}) {
    EXPECT_FALSE(is_supported_pod_level_resource(name)) << name;
  }
}

}  // namespace
}  // namespace podqos::core
