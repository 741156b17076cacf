#include "common/core/pods/claim.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/arrivals.h"
#include "tests/unit/core/byte_units.h"
#include "tests/unit/core/facts.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using arrivals::Arriving;
using arrivals::claim_of;
using arrivals::pod_named_app;
using arrivals::with_spec;
using byte_units::kMi;
using facts::engine;
using facts::kubelet_pod;
using pod_text::container;
using pod_text::list;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

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

TEST(ClaimForKubelet, BelievesItsScoreAndItsRequests) {
  struct Kubelet {
    const char* name;
    IdentitySource source;
    bool placed;
  };
  for (const auto& row : std::vector<Kubelet>{
           {"ByUid", IdentitySource::kEngine, false},
           {"ByCgroup", IdentitySource::kCgroup, true},
       }) {
    SCOPED_TRACE(row.name);
    Arriving a;
    a.identity.source = row.source;
    if (row.placed) a.identity.placed = kubelet_pod(QosClass::kBurstable);
    a.facts.resources.cpu_shares = 2;
    a.facts.resources.cpu_quota = 100'000;
    a.facts.oom_score_adj = 500;
    EXPECT_THAT(
        claim_of(a).pod.containers,
        ElementsAre(container("app", list({{"memory", "500000000"}}), list({{"cpu", "1"}}))));
  }
}

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

/// What podman pod create --cpus 0.5 --memory 100m sets.
Arriving in_bounded_pod(Arriving a) {
  a.identity = facts::identity(IdentitySource::kSandbox);
  a.engine.pod_bound = engine({.quota = 50'000, .period = 100'000, .memory = 100 << 20});
  return a;
}

/// They bound the pod, whatever its containers have.
core::EngineSums bound_by(ResourceList limits) {
  return {.resources = {.requests = {}, .limits = std::move(limits)}, .enforced = true};
}

TEST(ClaimForBoundedPod, KeepsTheEnginesLimitsOfTheWholePod) {
  Arriving a = in_bounded_pod({});
  a.facts.resources = engine({.memory = 64 << 20});
  const PodClaim claim = claim_of(a);
  EXPECT_EQ(claim.sums, bound_by(list({{"cpu", "500m"}, {"memory", "100Mi"}})));
  EXPECT_FALSE(claim.complete);
  EXPECT_THAT(claim.warnings, IsEmpty());
}

TEST(ClaimForBoundedPod, LetsAnAnnotationOnlyLowerThem) {
  const Arriving a =
      in_bounded_pod(with_spec(pod_named_app({}, list({{"cpu", "400m"}, {"memory", "200Mi"}}))));
  const PodClaim claim = claim_of(a);
  EXPECT_EQ(claim.source, ClassSource::kPodAnnotation);
  EXPECT_EQ(claim.sums, bound_by(list({{"memory", "100Mi"}})));
  EXPECT_THAT(claim.warnings, ElementsAre(HasSubstr("more memory than the engine's pod")));
}

TEST(ClaimForBoundedPod, BoundsAnAnnotationWithoutLimits) {
  const PodClaim claim = claim_of(in_bounded_pod(with_spec(pod_named_app({}))));
  EXPECT_EQ(claim.sums, bound_by(list({{"cpu", "500m"}, {"memory", "100Mi"}})));
}

TEST(ClaimForSandbox, KnowsNothingOfItsResources) {
  Arriving a;
  a.identity.is_sandbox = true;
  a.facts.resources.memory_limit = 4096;
  const PodClaim claim = claim_of(a);
  EXPECT_FALSE(claim.known);
  EXPECT_THAT(claim.pod.containers, IsEmpty());
  EXPECT_EQ(claim.pod.uid, "42");
}

TEST(ClaimForSandbox, TakesTheEnginesPodSums) {
  Arriving a;
  a.identity.is_sandbox = true;
  a.engine.pod_sums = engine({.shares = 1024, .memory = 4096});
  const PodClaim claim = claim_of(a);
  EXPECT_TRUE(claim.known);
  EXPECT_FALSE(claim.complete);
  EXPECT_EQ(claim.source, ClassSource::kCriSums);
  EXPECT_THAT(claim.pod.containers, IsEmpty());
  EXPECT_EQ(claim.sums, (core::EngineSums{.resources = {.requests = list({{"cpu", "1"}}),
                                                        .limits = list({{"memory", "4096"}})}}));
  EXPECT_EQ(claim.pod.resources, std::nullopt);
}

/// Not each container must have a limit.
TEST(ClaimForSandbox, LetsAPodRequestMoreThanItsSumOfLimits) {
  Arriving a;
  a.identity.is_sandbox = true;
  a.engine.pod_sums = engine({.shares = 1024, .quota = 5'000, .period = 100'000});
  EXPECT_EQ(claim_of(a).sums, (core::EngineSums{.resources = {.requests = list({{"cpu", "1"}}),
                                                              .limits = list({{"cpu", "50m"}})}}));
}

// calculateLinuxResources of 330m, and of 5m, whose quota is raised to the least.
TEST(ClaimForSandbox, TakesTheOverheadThatTheEngineTells) {
  Arriving a;
  a.identity.is_sandbox = true;
  a.engine.pod_overhead =
      engine({.shares = 337, .quota = 33'000, .period = 100'000, .memory = 4096});
  EXPECT_EQ(claim_of(a).pod.overhead, list({{"cpu", "330m"}, {"memory", "4096"}}));
  a.engine.pod_overhead = engine({.shares = 5, .quota = 1'000, .period = 100'000});
  EXPECT_EQ(claim_of(a).pod.overhead, list({{"cpu", "5m"}}));
}

TEST(ClaimForSandbox, TakesTheOverheadOfTheSpecBeforeTheEngines) {
  Pod pod = pod_named_app(list({{"cpu", "1"}}));
  Arriving a = with_spec(pod);
  a.identity.is_sandbox = true;
  a.engine.pod_overhead = engine({.shares = 1024});
  EXPECT_EQ(claim_of(a).pod.overhead, list({{"cpu", "1"}}));
  pod.overhead = list({{"cpu", "2"}});
  a.podqos.pod = std::make_shared<const Pod>(pod);
  EXPECT_EQ(claim_of(a).pod.overhead, list({{"cpu", "2"}}));
}

TEST(ClaimForSandbox, LearnsNothingFromSumsOfABestEffortPod) {
  Arriving a;
  a.identity.is_sandbox = true;
  a.engine.pod_sums = engine({.shares = 2});
  EXPECT_FALSE(claim_of(a).known);
}

TEST(ClaimForSandbox, IsNoContainerOfTheShortForms) {
  Arriving a;
  a.identity.is_sandbox = true;
  a.identity.container_name = "";
  a.podqos.containers["app"] = {.requests = {}, .limits = list({{"cpu", "1"}})};
  EXPECT_THAT(claim_of(a).pod.containers,
              ElementsAre(container("app", list({{"cpu", "1"}}), list({{"cpu", "1"}}))));
}

TEST(ClaimForSandbox, TakesTheSpecBeforeTheSums) {
  Arriving a = with_spec(pod_named_app(list({{"cpu", "1"}})));
  a.identity.is_sandbox = true;
  a.engine.pod_sums = engine({.shares = 512});
  EXPECT_EQ(claim_of(a).source, ClassSource::kPodAnnotation);
}

TEST(ContainerNameFor, IsTheBestThatIsKnown) {
  struct Naming {
    const char* name;
    const char* named;
    Pod pod;
    bool complete;
    const char* want;
  };
  for (const auto& row : std::vector<Naming>{
           {"AsNamed", "web", pod_named_app({}), true, "web"},
           {"TheOnlyOne", "", pod_named_app({}), true, "app"},
           {"TheOnlyOneSoFar", "", pod_named_app({}), false, "c1"},
           {"OneOfTwo", "", pod_text::pod({container("a", {}), container("b", {})}), true, "c1"},
           {"BesideAnInitContainer", "",
            pod_text::pod({container("a", {})}, {pod_text::init("i", {})}), true, "c1"},
           {"NothingKnown", "", {}, true, "c1"},
       }) {
    SCOPED_TRACE(row.name);
    PodClaim claim;
    claim.pod = row.pod;
    claim.complete = row.complete;
    EXPECT_EQ(container_name_for(facts::identity(IdentitySource::kLone, row.named), claim,
                                 facts::container_facts("c1")),
              row.want);
  }
}

TEST(ContainerNameForSandbox, IsNotThePodsOnlyContainer) {
  PodClaim claim;
  claim.pod = pod_named_app({});
  claim.complete = true;
  Identity identity = facts::identity(IdentitySource::kEngine, "");
  identity.is_sandbox = true;
  EXPECT_EQ(container_name_for(identity, claim, facts::container_facts("pause")), "pause");
}

EngineResources with_reservation(EngineResources engine, std::int64_t reservation) {
  engine.memory_reservation = reservation;
  return engine;
}

TEST(ContainerNameForResources, IsTheOnlyOneThatTheyFit) {
  /// What Podman says of a container of `kube play`: its resources, and no name.
  struct Unnamed {
    const char* name;
    EngineResources engine;
    const char* want;
    const char* sandbox = "infra";
  };
  for (const auto& row : std::vector<Unnamed>{
           {"AllThatPodmanPassesOn",
            with_reservation(facts::engine({.quota = 50000, .period = 100000, .memory = 64 * kMi}),
                             32 * kMi),
            "half"},
           {"ARequestThatTheDefaultsAdded", facts::engine({.memory = 32 * kMi}), "small"},
           {"AnInitContainer", facts::engine({.quota = 33300, .period = 100000}), "third"},
           {"AnotherPeriod", facts::engine({.quota = 16650, .period = 50000}), "third"},
           {"OneOfTwo", facts::engine({.memory = 16 * kMi}), "c1"},
           {"AnotherLimit", facts::engine({.quota = 50000, .period = 100000, .memory = 63 * kMi}),
            "c1"},
           {"AnotherQuota", facts::engine({.quota = 40000, .period = 100000, .memory = 64 * kMi}),
            "c1"},
           {"AnotherRequest", with_reservation(facts::engine({.memory = 32 * kMi}), 31 * kMi),
            "c1"},
           {"ALimitTooFew", facts::engine({.memory = 64 * kMi}), "c1"},
           {"NoneAtAll", {}, "c1"},
           // There podqos sets the limits: their absence says nothing.
           {"NoEngineThatKnowsPods", facts::engine({.memory = 32 * kMi}), "c1", ""},
       }) {
    SCOPED_TRACE(row.name);
    PodClaim claim;
    claim.complete = true;
    claim.pod = pod_text::pod(
        {container("half", list({{"cpu", "100m"}, {"memory", "32Mi"}}),
                   list({{"cpu", "500m"}, {"memory", "64Mi"}})),
         container("small", list({{"memory", "32Mi"}}), list({{"memory", "32Mi"}})),
         container("twin-1", list({{"cpu", "1"}, {"memory", "16Mi"}}), list({{"memory", "16Mi"}})),
         container("twin-2", list({{"memory", "16Mi"}}), list({{"memory", "16Mi"}})),
         container("free", {})},
        {pod_text::init("third", {}, list({{"cpu", "333m"}}))});
    Identity identity = facts::identity(IdentitySource::kSandbox, "");
    identity.sandbox_id = row.sandbox;
    ContainerFacts facts = facts::container_facts("c1");
    facts.resources = row.engine;
    EXPECT_EQ(container_name_for(identity, claim, facts), row.want);
  }
}

}  // namespace
}  // namespace podqos::core
