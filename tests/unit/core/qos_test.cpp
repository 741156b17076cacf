#include "common/core/kubernetes/qos.h"

#include <gtest/gtest.h>

#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using namespace pod_text;

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

struct ClassCase {
  const char* name;
  Pod pod;
  QosClass qos_class;
  const char* reason;
};

class Classify : public testing::TestWithParam<ClassCase> {};

TEST_P(Classify, GivesTheClassAndAReasonToCheck) {
  const auto verdict = classify(GetParam().pod);
  EXPECT_EQ(verdict.qos_class, GetParam().qos_class);
  EXPECT_EQ(verdict.reason, GetParam().reason);
}

constexpr auto kNothing = "no cpu or memory is requested or limited by the containers";
constexpr auto kInFull = "cpu and memory are limited, and requested in full, by the containers";

INSTANTIATE_TEST_SUITE_P(
    All, Classify,
    testing::Values(
        ClassCase{"NoContainers", pod({}), QosClass::kBestEffort, kNothing},
        ClassCase{"NothingAsked", pod({container("a", {})}), QosClass::kBestEffort, kNothing},
        ClassCase{"Full", pod({container("a", kFull, kFull)}), QosClass::kGuaranteed, kInFull},
        ClassCase{"FullInOtherNotation",
                  pod({container("a", list({{"cpu", "1000m"}, {"memory", "1Gi"}}),
                                 list({{"cpu", "1"}, {"memory", "1073741824"}}))}),
                  QosClass::kGuaranteed, kInFull},
        ClassCase{"OneContainerWithoutMemoryLimit",
                  pod({container("a", kFull, kFull),
                       container("b", list({{"cpu", "1"}}), list({{"cpu", "1"}}))}),
                  QosClass::kBurstable, "container \"b\" has no memory limit"},
        ClassCase{"InitContainersCount", pod({container("a", kFull, kFull)}, {init("setup", {})}),
                  QosClass::kBurstable, "init container \"setup\" has no cpu limit"},
        ClassCase{"SidecarsCount", pod({container("a", kFull, kFull)}, {sidecar("mesh", {})}),
                  QosClass::kBurstable, "init container \"mesh\" has no cpu limit"},
        ClassCase{"RequestBelowLimit",
                  pod({container("a", list({{"cpu", "0.5"}, {"memory", "1Gi"}}), kFull)}),
                  QosClass::kBurstable, "the cpu request of the containers is 0.5, the limit 1"},
        ClassCase{"SumsDecide",
                  pod({container("a", list({{"cpu", "2"}, {"memory", "1Gi"}}), kFull),
                       container("b", list({{"memory", "1Gi"}}), kFull)}),
                  QosClass::kGuaranteed, kInFull},
        ClassCase{"ZeroIsAbsent",
                  pod({container("a", list({{"cpu", "0"}}), list({{"memory", "0"}}))}),
                  QosClass::kBestEffort, kNothing},
        ClassCase{"NegativeIsAbsent", pod({container("a", list({{"cpu", "-1"}}))}),
                  QosClass::kBestEffort, kNothing},
        ClassCase{"OtherResourcesNeverMatter",
                  pod({container("a", list({{"hugepages-2Mi", "2Mi"}, {"nvidia.com/gpu", "1"}}))}),
                  QosClass::kBestEffort, kNothing},
        ClassCase{"EphemeralContainersNeverMatter", with_ephemeral(pod({container("a", {})})),
                  QosClass::kBestEffort, kNothing},
        ClassCase{"EmptyPodLevelHidesTheContainers",
                  with_pod_level(pod({container("a", kFull, kFull)}), {}), QosClass::kBestEffort,
                  "no cpu or memory is requested or limited by spec.resources"},
        ClassCase{"PodLevelInFull", with_pod_level(pod({container("a", {})}), {kFull, kFull}),
                  QosClass::kGuaranteed,
                  "cpu and memory are limited, and requested in full, by spec.resources"},
        ClassCase{"PodLevelRequestsOnly", with_pod_level(pod({container("a", {})}), {kFull, {}}),
                  QosClass::kBurstable, "spec.resources has no cpu limit"},
        ClassCase{"PodLevelMemoryOnly",
                  with_pod_level(pod({container("a", {})}),
                                 {list({{"memory", "1Gi"}}), list({{"memory", "1Gi"}})}),
                  QosClass::kBurstable, "spec.resources has no cpu limit"},
        ClassCase{"StatusWins",
                  with_status(pod({container("a", kFull, kFull)}), QosClass::kBestEffort),
                  QosClass::kBestEffort, "status.qosClass is BestEffort"}),
    [](const auto& row) { return row.param.name; });

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
