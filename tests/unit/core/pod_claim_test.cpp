#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/claim.h"
#include "tests/unit/core/arrivals.h"
#include "tests/unit/core/facts.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using arrivals::Arriving;
using arrivals::claim_of;
using arrivals::pod_named_app;
using arrivals::with_spec;
using facts::engine;
using facts::kubelet_pod;
using pod_text::container;
using pod_text::list;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::UnorderedElementsAre;
using ::testing::ValuesIn;

TEST(ClaimFor, TakesTheWholePodFromItsAnnotation) {
  Arriving a = with_spec(pod_named_app(list({{"cpu", "1"}})));
  a.identity.pod_name = "web";
  a.identity.pod_namespace = "shop";
  const PodClaim claim = claim_of(a);
  EXPECT_TRUE(claim.known);
  EXPECT_TRUE(claim.complete);
  EXPECT_EQ(claim.source, ClassSource::kPodAnnotation);
  EXPECT_EQ(claim.pod.uid, "42");
  EXPECT_EQ(claim.pod.name, "web");
  EXPECT_EQ(claim.pod.pod_namespace, "shop");
  EXPECT_EQ(claim.pod.containers, pod_named_app(list({{"cpu", "1"}})).containers);
  EXPECT_THAT(claim.warnings, IsEmpty());
}

TEST(ClaimFor, PrefersTheSpecToTheShortForms) {
  Arriving a = with_spec(pod_named_app(list({{"cpu", "1"}})));
  a.podqos.pod_level = Resources{.requests = list({{"cpu", "3"}}), .limits = {}};
  const PodClaim claim = claim_of(a);
  EXPECT_EQ(claim.source, ClassSource::kPodAnnotation);
  EXPECT_EQ(claim.pod.resources, std::nullopt);
}

TEST(ClaimFor, TakesAWholePodFromPodLevelShortForms) {
  Arriving a;
  a.podqos.pod_level = Resources{.requests = {}, .limits = list({{"memory", "1Gi"}})};
  const PodClaim claim = claim_of(a);
  EXPECT_TRUE(claim.complete);
  EXPECT_EQ(claim.source, ClassSource::kShortForms);
  EXPECT_EQ(claim.pod.resources, (Resources{.requests = list({{"memory", "1Gi"}}),
                                            .limits = list({{"memory", "1Gi"}})}));
  EXPECT_THAT(claim.pod.containers, ElementsAre(container("app", {})));
}

TEST(ClaimFor, WarnsOfAnAnnotationThatWasSplitAtItsComma) {
  // What Podman 4.3.1 makes of --annotation podqos.io/requests=cpu=100m,memory=64Mi.
  Arriving a;
  a.facts.annotations = {{"podqos.io/requests", "cpu=100m"}, {"memory", "64Mi"}};
  a.podqos.pod_level = Resources{.requests = list({{"cpu", "100m"}}), .limits = {}};
  EXPECT_THAT(claim_of(a).warnings,
              ElementsAre("annotation podqos.io/requests has no memory, but there is an annotation "
                          "memory = \"64Mi\", which is not read: Podman 4.3 splits --annotation at "
                          "a comma; use --annotation podqos.io/memory-request=64Mi"));
  a.podqos.pod_level->requests = list({{"cpu", "100m"}, {"memory", "64Mi"}});
  EXPECT_THAT(claim_of(a).warnings, IsEmpty());
  a.podqos.pod_level = Resources{.requests = {}, .limits = list({{"cpu", "1"}})};
  EXPECT_THAT(claim_of(a).warnings, ElementsAre(HasSubstr("podqos.io/memory-limit=64Mi")));
}

TEST(ClaimFor, TakesPartOfAPodFromContainersShortForms) {
  Arriving a;
  a.podqos.containers["app"] = {.requests = {}, .limits = list({{"cpu", "500m"}})};
  a.podqos.containers["db"] = {.requests = list({{"memory", "1Gi"}}), .limits = {}};
  const PodClaim claim = claim_of(a);
  EXPECT_TRUE(claim.known);
  EXPECT_FALSE(claim.complete);
  EXPECT_EQ(claim.source, ClassSource::kShortForms);
  EXPECT_THAT(claim.pod.containers,
              ElementsAre(container("app", list({{"cpu", "500m"}}), list({{"cpu", "500m"}})),
                          container("db", list({{"memory", "1Gi"}}))));
}

TEST(ClaimFor, KeepsTheEnginesValuesOfAContainerThatTheShortFormsLeaveOut) {
  Arriving a;
  a.identity.container_name = "web";
  a.podqos.containers["db"] = {.requests = {}, .limits = list({{"memory", "1Gi"}})};
  a.facts.resources = engine({.shares = 512, .memory = 4096});
  const PodClaim claim = claim_of(a);
  EXPECT_EQ(claim.source, ClassSource::kShortForms);
  EXPECT_THAT(
      claim.pod.containers,
      UnorderedElementsAre(container("db", list({{"memory", "1Gi"}}), list({{"memory", "1Gi"}})),
                           container("web", list({{"cpu", "500m"}, {"memory", "4096"}}),
                                     list({{"memory", "4096"}}))));
}

TEST(ClaimFor, InfersWhereNothingIsAnnotated) {
  Arriving a;
  a.facts.resources.memory_limit = 4096;
  a.facts.resources.cpu_shares = 512;
  a.facts.oom_score_adj = 500;
  const PodClaim claim = claim_of(a);
  EXPECT_TRUE(claim.known);
  EXPECT_FALSE(claim.complete);
  EXPECT_EQ(claim.source, ClassSource::kInference);
  EXPECT_EQ(claim.engine_class, std::nullopt);
  // No kubelet: the score says nothing, and a request that is not there follows the limit.
  EXPECT_THAT(claim.pod.containers,
              ElementsAre(container("app", list({{"cpu", "500m"}, {"memory", "4096"}}),
                                    list({{"memory", "4096"}}))));
}

TEST(ClaimFor, CallsAnUnnamedContainerByItsId) {
  Arriving a;
  a.identity.container_name = "";
  EXPECT_THAT(claim_of(a).pod.containers, ElementsAre(container("c1", {})));
}

struct Kubelet {
  const char* name;
  IdentitySource source;
  bool placed;
};
class ClaimForKubelet : public TestWithParam<Kubelet> {};

TEST_P(ClaimForKubelet, BelievesItsScoreAndItsRequests) {
  Arriving a;
  a.identity.source = GetParam().source;
  if (GetParam().placed) a.identity.placed = kubelet_pod(QosClass::kBurstable);
  a.facts.resources.cpu_shares = 2;
  a.facts.resources.cpu_quota = 100'000;
  a.facts.oom_score_adj = 500;
  EXPECT_THAT(claim_of(a).pod.containers,
              ElementsAre(container("app", list({{"memory", "500000000"}}), list({{"cpu", "1"}}))));
}

INSTANTIATE_TEST_SUITE_P(Table, ClaimForKubelet,
                         ValuesIn<Kubelet>({
                             {"ByUid", IdentitySource::kEngine, false},
                             {"ByCgroup", IdentitySource::kCgroup, true},
                         }),
                         [](const TestParamInfo<Kubelet>& row) {
                           return std::string{row.param.name};
                         });

/// A Pod's author writes annotations, also of a kubelet's pod: they could claim the whole node.
TEST(ClaimFor, TakesTheRequestsOfAKubeletsPodFromTheKubelet) {
  for (const auto trust : {TrustAnnotations::kEngineChecked, TrustAnnotations::kAll}) {
    for (const bool whole : {false, true}) {
      Arriving a =
          whole ? with_spec(pod_named_app(list({{"cpu", "50"}, {"memory", "2Gi"}}))) : Arriving{};
      const Resources much{.requests = list({{"cpu", "50"}, {"memory", "2Gi"}}), .limits = {}};
      if (!whole) a.podqos.pod_level = much;
      a.podqos.containers["app"] = much;
      a.settings.trust_annotations = trust;
      a.identity = facts::identity(IdentitySource::kEngine);
      a.identity.placed = kubelet_pod(QosClass::kBurstable);
      a.facts.resources.cpu_shares = 102;
      a.engine.pod_sums = facts::engine({.shares = 204});
      const PodClaim claim = claim_of(a);
      EXPECT_EQ(claim.source, ClassSource::kInference);
      EXPECT_FALSE(claim.complete);
      EXPECT_FALSE(claim.pod.resources);
      EXPECT_EQ(find(claim.pod.containers.front().resources.requests, kCpu)->milli_value(), 100);
      ASSERT_TRUE(claim.sums);
      EXPECT_EQ(find(claim.sums->resources.requests, kCpu)->milli_value(), 200);
    }
  }
}

TEST(ClaimFor, TakesTheClassFromAKubeletsCgroup) {
  Arriving a = with_spec(pod_named_app({}));
  a.identity.placed = kubelet_pod(QosClass::kGuaranteed);
  a.podqos.qos_class = QosClass::kBestEffort;
  const PodClaim claim = claim_of(a);
  EXPECT_EQ(claim.engine_class, QosClass::kGuaranteed);
  EXPECT_EQ(claim.declared_class, QosClass::kBestEffort);
}

}  // namespace
}  // namespace podqos::core
