#include "common/core/kubernetes/validation.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using namespace pod_text;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Validate, AValidPodHasNoProblems) {
  auto subject = pod({container("a", list({{"cpu", "1"}, {"hugepages-2Mi", "2Mi"}}),
                                list({{"cpu", "1"}, {"hugepages-2Mi", "2Mi"}}))},
                     {init("i", {}, list({{"cpu", "9"}}))});
  subject.resources =
      Resources{.requests = list({{"memory", "1Gi"}}), .limits = list({{"cpu", "2"}})};
  subject.overhead = list({{"cpu", "1m"}});
  EXPECT_THAT(validate(subject), IsEmpty());
  EXPECT_THAT(validate(Pod{}), IsEmpty());
}

Pod with_pod_level(Pod pod, ResourceList requests, ResourceList limits) {
  pod.resources = Resources{std::move(requests), std::move(limits)};
  return pod;
}

Pod with_overhead(Pod pod, ResourceList overhead) {
  pod.overhead = std::move(overhead);
  return pod;
}

TEST(ValidateReports, ContainerResourceAndBothValues) {
  struct ProblemCase {
    const char* name;
    Pod pod;
    const char* problem;
  };
  for (const auto& row : std::vector<ProblemCase>{
           {"NegativeRequest", pod({container("a", list({{"cpu", "-1"}}))}),
            "container \"a\": cpu request -1 is negative"},
           {"NegativeLimit", pod({}, {init("i", {}, list({{"memory", "-1m"}}))}),
            "init container \"i\": memory limit -0.001 is negative"},
           {"NegativeOverhead", with_overhead(pod({}), list({{"cpu", "-1"}})),
            "pod: cpu overhead -1 is negative"},
           {"RequestAboveLimit",
            pod({container("a", list({{"cpu", "1.5"}}), list({{"cpu", "1"}}))}),
            "container \"a\": cpu request 1500m exceeds the limit 1"},
           {"HugePagesDiffer",
            pod({container("a", list({{"cpu", "1"}, {"hugepages-2Mi", "2Mi"}}),
                           list({{"hugepages-2Mi", "4Mi"}}))}),
            "container \"a\": hugepages-2Mi request 2Mi must equal the limit 4Mi"},
           {"HugePagesAlone",
            pod({container("a", list({{"hugepages-2Mi", "2Mi"}}),
                           list({{"hugepages-2Mi", "2Mi"}}))}),
            "container \"a\": huge pages require cpu or memory as well"},
           {"ExtendedWithoutLimit", pod({container("a", list({{"nvidia.com/gpu", "1"}}))}),
            "container \"a\": nvidia.com/gpu request 1 needs an equal limit"},
           {"ExtendedFraction", pod({container("a", {}, list({{"nvidia.com/gpu", "0.5"}}))}),
            "container \"a\": nvidia.com/gpu limit 0.5 is not a whole number"},
           {"PodRequestAbovePodLimit",
            with_pod_level(pod({}), list({{"cpu", "2"}}), list({{"cpu", "1"}})),
            "pod: cpu request 2 exceeds the limit 1"},
           {"PodRequestBelowContainers",
            with_pod_level(
                pod({container("a", list({{"cpu", "2"}})), container("b", list({{"cpu", "1"}}))}),
                list({{"cpu", "2"}}), {}),
            "pod: cpu request 2 is below the containers' 3"},
           {"ContainerLimitAbovePods",
            with_pod_level(pod({container("a", {}, list({{"memory", "2Gi"}}))}), {},
                           list({{"memory", "1Gi"}})),
            "container \"a\": memory limit 2Gi exceeds the pod's limit 1Gi"}}) {
    SCOPED_TRACE(row.name);
    EXPECT_THAT(validate(row.pod), ElementsAre(row.problem));
  }
}

TEST(Validate, ReportsEveryProblem) {
  const auto problems = validate(pod({container("a", list({{"cpu", "2"}, {"memory", "2"}}),
                                                list({{"cpu", "1"}, {"memory", "1"}}))}));
  EXPECT_THAT(problems, ElementsAre("container \"a\": cpu request 2 exceeds the limit 1",
                                    "container \"a\": memory request 2 exceeds the limit 1"));
}

TEST(ValidateManifest, WantsAContainer) {
  constexpr const char* kNone = "spec.containers: a pod needs at least one container";
  EXPECT_THAT(validate_manifest(Pod{}), ElementsAre(kNone));
  EXPECT_THAT(validate_manifest(pod({}, {init("i", {}, {})})), ElementsAre(kNone));
  EXPECT_THAT(validate_manifest(pod({container("a", {})})), IsEmpty());
}

TEST(ValidateManifest, WantsNamesThatContainersCanHave) {
  EXPECT_THAT(validate_manifest(pod({container("a", list({{"cpus", "1"}}))})),
              ElementsAre(HasSubstr("container \"a\": resource \"cpus\": expected cpu, memory")));
  EXPECT_THAT(validate_manifest(pod({container("a", list({{"ephemeral-storage", "1Gi"}}))})),
              IsEmpty());
  const auto device = list({{"example.com/device", "1"}});
  EXPECT_THAT(validate_manifest(pod({container("a", device, device)})), IsEmpty());
}

TEST(ValidateManifest, WantsWholeHugePages) {
  const auto with = [](const char* size) {
    const auto both = list({{"cpu", "1"}, {"hugepages-2Mi", size}});
    return validate_manifest(pod({container("a", both, both)}));
  };
  EXPECT_THAT(with("4Mi"), IsEmpty());
  EXPECT_THAT(with("3Mi"), Contains(HasSubstr("hugepages-2Mi 3Mi is not a multiple")));
}

// pkg/apis/core/v1/helper IsHugePageResourceValueDivisible.
TEST(ValidateManifest, WantsAPageSizeAboveZero) {
  const auto with = [](const char* name) {
    const auto both = list({{"cpu", "1"}, {name, "3"}});
    return validate_manifest(pod({container("a", both, both)}));
  };
  EXPECT_THAT(with("hugepages-0"), Contains(HasSubstr("hugepages-0 3 is not a multiple")));
  EXPECT_THAT(with("hugepages-1"), IsEmpty());
}

TEST(ValidateManifest, ReportsWhatValidateDoes) {
  EXPECT_THAT(validate_manifest(pod({container("a", list({{"cpu", "-1"}}))})),
              ElementsAre("container \"a\": cpu request -1 is negative"));
}

// pkg/api/pod/warnings.go: fractional byte value "256m" is invalid, must be an integer.
TEST(FractionalAmounts, NamesEachAmountOnce) {
  auto subject = pod({container("a", list({{"cpu", "1m"}, {"memory", "256m"}}),
                                list({{"memory", "256m"}, {"ephemeral-storage", "1.5"}}))},
                     {init("i", list({{"memory", "1n"}}), {})});
  subject.resources = Resources{.requests = {}, .limits = list({{"memory", "512m"}})};
  subject.overhead = list({{"memory", "1m"}});
  EXPECT_THAT(fractional_amounts(subject),
              ElementsAre("container \"a\": ephemeral-storage limit is 1.5 bytes: did you mean "
                          "1.5Gi?",
                          "container \"a\": memory limit is 0.256 bytes: did you mean 256Mi?",
                          "container \"i\": memory request is 0.000000001 bytes: expected whole "
                          "bytes, such as 256Mi",
                          "pod: memory limit is 0.512 bytes: did you mean 512Mi?",
                          "pod overhead: memory request is 0.001 bytes: did you mean 1Mi?"));
}

TEST(FractionalAmounts, LeavesWholeBytesAndOtherUnitsAlone) {
  EXPECT_THAT(fractional_amounts(pod({container("a", list({{"cpu", "1m"}, {"memory", "256Mi"}}),
                                                list({{"memory", "256000m"}}))})),
              IsEmpty());
}

TEST(LowMemoryLimits, NamesThoseWithWhichNoContainerStarts) {
  const auto limited = [](const char* name, const char* memory) {
    return container(name, {}, list({{"memory", memory}}));
  };
  Pod subject = pod({limited("a", "256"), limited("b", "6Mi"), limited("c", "5Mi"),
                     limited("d", "0"), limited("e", "1"), container("f", {}, {})});
  subject.resources = Resources{.requests = {}, .limits = list({{"memory", "64"}})};
  EXPECT_THAT(low_memory_limits(subject),
              ElementsAre("container \"a\": memory limit 256 is too low for a container to start, "
                          "which takes 6Mi: did you mean 256Mi?",
                          "container \"c\": memory limit 5Mi is too low for a container to start, "
                          "which takes 6Mi",
                          "container \"e\": memory limit 1 is too low for a container to start, "
                          "which takes 6Mi",
                          "pod: memory limit 64 is too low for a container to start, which takes "
                          "6Mi: did you mean 64Mi?"));
}

TEST(LowMemoryLimits, TakeAForgottenUnitForMiIfThatIsEnough) {
  struct LowCase {
    const char* limit;
    std::string problem;
  };
  for (const auto& [limit, problem] : std::vector<LowCase>{
           {"2", "2 is too low for a container to start, which takes 6Mi: did you mean 2Mi?"},
           {"6143",
            "6143 is too low for a container to start, which takes 6Mi: did you mean 6143Mi?"},
           {"6144", "6Ki is too low for a container to start, which takes 6Mi"},
           {"6291455", "6291455 is too low for a container to start, which takes 6Mi"},
       })
    EXPECT_THAT(low_memory_limits(pod({container("a", {}, list({{"memory", limit}}))})),
                ElementsAre("container \"a\": memory limit " + problem));
}

}  // namespace
}  // namespace podqos::core
