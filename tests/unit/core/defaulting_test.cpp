#include <cstdint>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include "common/core/pod_resources.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using namespace pod_text;

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
