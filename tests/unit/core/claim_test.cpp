#include "common/core/pods/claim.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/byte_units.h"
#include "tests/unit/core/facts.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using byte_units::kMi;
using facts::engine;
using facts::kNodeMemory;
using facts::kubelet_pod;
using pod_text::container;
using pod_text::list;
using pod_text::memory;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

/// One container's arrival, as plain runc sees it unless a test says otherwise.
struct Arriving {
  Identity identity = facts::identity(IdentitySource::kAnnotation);
  ContainerFacts facts = facts::container_facts("c1");
  PodqosAnnotations podqos;
  EngineAnnotations engine;
  Settings settings;
};

PodClaim claim_of(const Arriving& a) {
  return claim_for(a.identity, {.facts = a.facts, .podqos = a.podqos, .engine = a.engine},
                   a.settings, facts::kNodeMemory);
}

Pod pod_named_app(ResourceList requests, ResourceList limits = {}) {
  return pod_text::pod({pod_text::container("app", std::move(requests), std::move(limits))});
}

Arriving with_spec(Pod pod) {
  Arriving a;
  a.podqos.pod = std::make_shared<const Pod>(std::move(pod));
  return a;
}

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

/// KEP-2837: what containers request is at most the pod's request, and that at most its limit.
TEST(ClaimFor, RequestsNoMoreThanThePodsLimit) {
  Arriving a;
  a.podqos.pod_level =
      Resources{.requests = {}, .limits = list({{"cpu", "500m"}, {"memory", "256Mi"}})};
  a.facts.resources = engine({.shares = 2048, .quota = 100'000, .memory = 1'073'741'824});
  const ResourceList both = list({{"cpu", "500m"}, {"memory", "256Mi"}});
  PodClaim claim = claim_of(a);
  EXPECT_EQ(claim.pod.resources, (Resources{.requests = both, .limits = both}));
  EXPECT_THAT(claim.pod.containers, ElementsAre(container("app", both, both)));
  // Together they would request 1 CPU.
  a.podqos.containers["db"] = {.requests = list({{"cpu", "500m"}}), .limits = {}};
  claim = claim_of(a);
  EXPECT_EQ(claim.pod.resources, (Resources{.requests = both, .limits = both}));
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

TEST(ClaimForKubelet, BelievesItsScoreAndItsRequests) {
  Arriving by_uid;
  by_uid.identity.source = IdentitySource::kEngine;
  by_uid.facts.resources = engine({.shares = 2, .quota = 100'000});
  by_uid.facts.oom_score_adj = 500;
  Arriving by_cgroup = by_uid;
  by_cgroup.identity.source = IdentitySource::kCgroup;
  by_cgroup.identity.placed = kubelet_pod(QosClass::kBurstable);
  for (const Arriving& a : {by_uid, by_cgroup}) {
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
      a.engine.pod_sums = engine({.shares = 204});
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
  const Arriving annotated = in_bounded_pod(with_spec(pod_named_app({})));
  EXPECT_EQ(claim_of(annotated).sums, claim.sums);
}

TEST(ClaimForBoundedPod, LetsAnAnnotationOnlyLowerThem) {
  const Arriving a =
      in_bounded_pod(with_spec(pod_named_app({}, list({{"cpu", "400m"}, {"memory", "200Mi"}}))));
  const PodClaim claim = claim_of(a);
  EXPECT_EQ(claim.source, ClassSource::kPodAnnotation);
  EXPECT_EQ(claim.sums, bound_by(list({{"memory", "100Mi"}})));
  EXPECT_THAT(claim.warnings, ElementsAre(HasSubstr("more memory than the engine's pod")));
}

/// The same as its pod's sandbox.
Arriving as_sandbox(Arriving a) {
  a.identity.is_sandbox = true;
  return a;
}

TEST(ClaimForSandbox, KnowsNothingOfItsResources) {
  Arriving a = as_sandbox({});
  a.facts.resources.memory_limit = 4096;
  // As for a BestEffort pod.
  a.engine.pod_sums = engine({.shares = 2});
  const PodClaim claim = claim_of(a);
  EXPECT_FALSE(claim.known);
  EXPECT_THAT(claim.pod.containers, IsEmpty());
  EXPECT_EQ(claim.pod.uid, "42");
}

TEST(ClaimForSandbox, TakesTheEnginesPodSums) {
  Arriving a = as_sandbox({});
  a.engine.pod_sums = engine({.shares = 1024, .memory = 4096});
  const PodClaim claim = claim_of(a);
  EXPECT_TRUE(claim.known);
  EXPECT_FALSE(claim.complete);
  EXPECT_EQ(claim.source, ClassSource::kCriSums);
  EXPECT_THAT(claim.pod.containers, IsEmpty());
  EXPECT_EQ(claim.sums, (core::EngineSums{.resources = {.requests = list({{"cpu", "1"}}),
                                                        .limits = list({{"memory", "4096"}})}}));
  EXPECT_EQ(claim.pod.resources, std::nullopt);
  // Not each container must have a limit: the pod may request more than their sum.
  a.engine.pod_sums = engine({.shares = 1024, .quota = 5'000, .period = 100'000});
  EXPECT_EQ(claim_of(a).sums, (core::EngineSums{.resources = {.requests = list({{"cpu", "1"}}),
                                                              .limits = list({{"cpu", "50m"}})}}));
}

// calculateLinuxResources of 330m, and of 5m, whose quota is raised to the least.
TEST(ClaimForSandbox, TakesTheOverheadThatTheEngineTells) {
  Arriving a = as_sandbox({});
  a.engine.pod_overhead =
      engine({.shares = 337, .quota = 33'000, .period = 100'000, .memory = 4096});
  EXPECT_EQ(claim_of(a).pod.overhead, list({{"cpu", "330m"}, {"memory", "4096"}}));
  a.engine.pod_overhead = engine({.shares = 5, .quota = 1'000, .period = 100'000});
  EXPECT_EQ(claim_of(a).pod.overhead, list({{"cpu", "5m"}}));
}

TEST(ClaimForSandbox, TakesTheOverheadOfTheSpecBeforeTheEngines) {
  Pod pod = pod_named_app(list({{"cpu", "1"}}));
  Arriving a = as_sandbox(with_spec(pod));
  a.engine.pod_overhead = engine({.shares = 1024});
  EXPECT_EQ(claim_of(a).pod.overhead, list({{"cpu", "1"}}));
  pod.overhead = list({{"cpu", "2"}});
  a.podqos.pod = std::make_shared<const Pod>(pod);
  EXPECT_EQ(claim_of(a).pod.overhead, list({{"cpu", "2"}}));
}

TEST(ClaimForSandbox, IsNoContainerOfTheShortForms) {
  Arriving a = as_sandbox({});
  a.identity.container_name = "";
  a.podqos.containers["app"] = {.requests = {}, .limits = list({{"cpu", "1"}})};
  EXPECT_THAT(claim_of(a).pod.containers,
              ElementsAre(container("app", list({{"cpu", "1"}}), list({{"cpu", "1"}}))));
}

TEST(ClaimForSandbox, TakesTheSpecBeforeTheSums) {
  Arriving a = as_sandbox(with_spec(pod_named_app(list({{"cpu", "1"}}))));
  a.engine.pod_sums = engine({.shares = 512});
  EXPECT_EQ(claim_of(a).source, ClassSource::kPodAnnotation);
}

TEST(ClaimedPodName, IsTheEnginesThenTheSpecsThenAPodmanPodsHostname) {
  Arriving a;
  a.facts.shared_hostname = "host";
  EXPECT_EQ(claim_of(a).pod.name, "") << "of no pod of Podman";
  a.engine.engine = Engine::kPodman;
  EXPECT_EQ(claim_of(a).pod.name, "") << "in no pod";
  a.engine.sandbox_id = "s";
  EXPECT_EQ(claim_of(a).pod.name, "host");
  EXPECT_EQ(claim_of(a).pod.pod_namespace, "");
  Pod spec = pod_named_app({});
  spec.name = "web";
  spec.pod_namespace = "shop";
  a.podqos.pod = std::make_shared<const Pod>(spec);
  EXPECT_EQ(claim_of(a).pod.name, "web");
  EXPECT_EQ(claim_of(a).pod.pod_namespace, "shop");
  a.identity.pod_name = "told";
  a.identity.pod_namespace = "by-the-engine";
  EXPECT_EQ(claim_of(a).pod.name, "told");
  EXPECT_EQ(claim_of(a).pod.pod_namespace, "by-the-engine");
}

TEST(ClaimedName, IsTheBestThatIsKnown) {
  struct Naming {
    const char* name;
    const char* named;
    Pod pod;
    const char* want;
    bool sandbox = false;
  };
  for (const auto& row : std::vector<Naming>{
           {"AsNamed", "web", pod_named_app({}), "web"},
           {"TheOnlyOne", "", pod_named_app({}), "app"},
           {"OneOfTwo", "", pod_text::pod({container("a", {}), container("b", {})}), "c1"},
           {"BesideAnInitContainer", "",
            pod_text::pod({container("a", {})}, {pod_text::init("i", {})}), "c1"},
           {"NothingKnown", "", {}, "c1"},
           {"ASandbox", "", pod_named_app({}), "c1", true},
       }) {
    SCOPED_TRACE(row.name);
    Arriving a = with_spec(row.pod);
    a.identity = facts::identity(IdentitySource::kLone, row.named);
    a.identity.is_sandbox = row.sandbox;
    EXPECT_EQ(claim_of(a).container, row.want);
  }
  Arriving first;
  first.identity.container_name.clear();
  first.podqos.containers["app"] = {};
  EXPECT_EQ(claim_of(first).container, "c1") << "app is only the first that is known";
}

TEST(ClaimedNameByResources, IsTheOnlyOneThatTheyFit) {
  /// What Podman says of a container of `kube play`: its resources, and no name.
  struct Unnamed {
    const char* name;
    EngineResources engine;
    const char* want;
    const char* sandbox = "infra";
  };
  for (const auto& row : std::vector<Unnamed>{
           {"AllThatPodmanPassesOn",
            engine({.quota = 50000, .period = 100000, .memory = 64 * kMi, .reservation = 32 * kMi}),
            "half"},
           {"ARequestThatTheDefaultsAdded", engine({.memory = 32 * kMi}), "small"},
           {"AnInitContainer", engine({.quota = 33300, .period = 100000}), "third"},
           {"AnotherPeriod", engine({.quota = 16650, .period = 50000}), "third"},
           {"OneOfTwo", engine({.memory = 16 * kMi}), "c1"},
           {"AnotherLimit", engine({.quota = 50000, .period = 100000, .memory = 63 * kMi}), "c1"},
           {"AnotherQuota", engine({.quota = 40000, .period = 100000, .memory = 64 * kMi}), "c1"},
           {"AnotherRequest", engine({.memory = 32 * kMi, .reservation = 31 * kMi}), "c1"},
           {"ALimitTooFew", engine({.memory = 64 * kMi}), "c1"},
           {"NoneAtAll", {}, "c1"},
           // There podqos sets the limits: their absence says nothing.
           {"NoEngineThatKnowsPods", engine({.memory = 32 * kMi}), "c1", ""},
       }) {
    SCOPED_TRACE(row.name);
    Arriving a = with_spec(pod_text::pod(
        {container("half", list({{"cpu", "100m"}, {"memory", "32Mi"}}),
                   list({{"cpu", "500m"}, {"memory", "64Mi"}})),
         container("small", list({{"memory", "32Mi"}}), list({{"memory", "32Mi"}})),
         container("twin-1", list({{"cpu", "1"}, {"memory", "16Mi"}}), list({{"memory", "16Mi"}})),
         container("twin-2", list({{"memory", "16Mi"}}), list({{"memory", "16Mi"}})),
         container("free", {})},
        {pod_text::init("third", {}, list({{"cpu", "333m"}}))}));
    a.identity = facts::identity(IdentitySource::kSandbox, "");
    a.identity.sandbox_id = row.sandbox;
    a.facts.resources = row.engine;
    EXPECT_EQ(claim_of(a).container, row.want);
  }
}

struct Trust {
  const char* name;
  ResourceList limits;
  EngineResources engine;
  bool checked;  ///< believed under engine-checked
};
TEST(ClaimForTrust, ChecksLimitsAgainstTheEngine) {
  for (const auto& row : std::vector<Trust>{
           {"NoEngineLimit", list({{"memory", "1Ei"}}), {}, true},
           {"TheEnginesMemory", list({{"memory", "4096"}}), engine({.memory = 4096}), true},
           {"MoreMemory", list({{"memory", "4097"}}), engine({.memory = 4096}), false},
           {"AFractionMoreMemory", list({{"memory", "4096.5"}}), engine({.memory = 4096}), false},
           {"LessMemory", list({{"memory", "1"}}), engine({.memory = 4096}), true},
           {"UnlimitedMemory", list({{"memory", "1Ei"}}), engine({.memory = -1}), true},
           {"TheEnginesQuota", list({{"cpu", "500m"}}),
            engine({.quota = 50'000, .period = 100'000}), true},
           {"AQuotaThatTheEngineRoundedDown", list({{"cpu", "333m"}}),
            engine({.quota = 3'329, .period = 10'000}), true},
           {"MoreCpu", list({{"cpu", "501m"}}), engine({.quota = 50'000, .period = 100'000}),
            false},
           {"MoreCpuOfTheDefaultPeriod", list({{"cpu", "2"}}), engine({.quota = 100'000}), false},
           {"AsMuchInAnotherPeriod", list({{"cpu", "2"}}),
            engine({.quota = 100'000, .period = 50'000}), true},
           {"UnlimitedCpu", list({{"cpu", "2"}}), engine({.quota = -1}), true},
           {"AnEnormousCpu", list({{"cpu", "1E"}}), engine({.quota = 100'000}), false},
       }) {
    SCOPED_TRACE(row.name);
    Arriving spec = with_spec(pod_named_app(row.limits, row.limits));
    Arriving short_form;
    short_form.podqos.containers["app"] = {.requests = {}, .limits = row.limits};
    spec.facts.resources = short_form.facts.resources = row.engine;
    const auto believed_if = [](bool believed, ClassSource source) {
      return AllOf(Field(&PodClaim::source, believed ? source : ClassSource::kInference),
                   Field(&PodClaim::complete, believed && source == ClassSource::kPodAnnotation),
                   Field(&PodClaim::warnings, SizeIs(believed ? 0 : 1)));
    };
    EXPECT_THAT(claim_of(spec), believed_if(row.checked, ClassSource::kPodAnnotation));
    EXPECT_THAT(claim_of(short_form), believed_if(row.checked, ClassSource::kShortForms));
    // The operator may believe all, or nothing.
    short_form.settings.trust_annotations = TrustAnnotations::kAll;
    EXPECT_EQ(claim_of(short_form).source, ClassSource::kShortForms);
    spec.settings.trust_annotations = TrustAnnotations::kNone;
    spec.podqos.qos_class = QosClass::kBestEffort;
    EXPECT_EQ(claim_of(spec).source, ClassSource::kInference);
    EXPECT_EQ(claim_of(spec).declared_class, std::nullopt);
  }
}

TEST(ClaimForTrust, ChecksRequestsAlone) {
  Arriving a;
  a.podqos.containers["app"] = {.requests = list({{"memory", "100Gi"}}), .limits = {}};
  a.facts.resources.memory_limit = 4096;
  const PodClaim claim = claim_of(a);
  EXPECT_EQ(claim.source, ClassSource::kInference);
  EXPECT_THAT(claim.warnings, ElementsAre(HasSubstr("memory request 100Gi exceeds")));
}

TEST(ClaimForTrust, ChecksCpuRequestsAlone) {
  Arriving a = with_spec(pod_named_app(list({{"cpu", "2"}})));
  a.facts.resources = engine({.quota = 100'000, .period = 100'000});
  EXPECT_EQ(claim_of(a).source, ClassSource::kInference);
  a.podqos.pod = with_spec(pod_named_app(list({{"cpu", "1"}}))).podqos.pod;
  EXPECT_EQ(claim_of(a).source, ClassSource::kPodAnnotation);
}

TEST(ClaimForTrust, ChecksTheOnlyContainerOfAPodWithoutAName) {
  Arriving a = with_spec(pod_named_app({}, list({{"memory", "100Gi"}})));
  a.identity.container_name = "";
  a.facts.resources.memory_limit = 4096;
  EXPECT_EQ(claim_of(a).source, ClassSource::kInference);
  a.facts.resources.memory_limit = 107'374'182'400;
  EXPECT_EQ(claim_of(a).source, ClassSource::kPodAnnotation);
}

TEST(ClaimForTrust, ChecksWhatIsClaimedForTheWholePodOfOneContainer) {
  Pod pod = pod_named_app({});
  pod.resources = Resources{.requests = list({{"memory", "100Gi"}}), .limits = {}};
  Arriving a = with_spec(pod);
  a.facts.resources.memory_limit = 4096;
  EXPECT_EQ(claim_of(a).source, ClassSource::kInference);
  pod.containers.push_back(container("other", {}));
  a.podqos.pod = with_spec(pod).podqos.pod;
  EXPECT_EQ(claim_of(a).source, ClassSource::kPodAnnotation);
}

TEST(ClaimForTrust, ChecksPodLevelShortFormsOfALoneContainer) {
  Arriving a;
  a.podqos.pod_level = Resources{.requests = list({{"memory", "100Gi"}}), .limits = {}};
  a.facts.resources.memory_limit = 4096;
  EXPECT_EQ(claim_of(a).source, ClassSource::kShortForms);
  a.identity.source = IdentitySource::kLone;
  EXPECT_EQ(claim_of(a).source, ClassSource::kInference);
}

TEST(ClaimForTrust, RefusesASpecWithoutTheEnginesContainer) {
  Arriving a = with_spec(pod_named_app({}));
  a.identity = facts::identity(IdentitySource::kEngine, "web");
  const PodClaim claim = claim_of(a);
  EXPECT_EQ(claim.source, ClassSource::kInference);
  EXPECT_THAT(claim.warnings, ElementsAre(HasSubstr("has no container \"web\"")));
  a.settings.trust_annotations = TrustAnnotations::kAll;
  EXPECT_EQ(claim_of(a).source, ClassSource::kPodAnnotation);
}

TEST(ClaimForTrust, TakesASpecForTheEnginesSandbox) {
  Arriving a = with_spec(pod_named_app({}));
  a.identity = facts::identity(IdentitySource::kEngine, "");
  a.identity.is_sandbox = true;
  EXPECT_EQ(claim_of(a).source, ClassSource::kPodAnnotation);
}

TEST(ClaimForTrust, KeepsADeclaredClassOfARefusedSpec) {
  Arriving a = with_spec(pod_named_app({}, list({{"memory", "2Gi"}})));
  a.podqos.qos_class = QosClass::kBestEffort;
  a.facts.resources.memory_limit = 4096;
  EXPECT_EQ(claim_of(a).declared_class, QosClass::kBestEffort);
}

TEST(ClaimForTrust, ChecksAnUnnamedContainerAgainstItsOwnPart) {
  Arriving a = with_spec(pod_text::pod({container("a", {}, list({{"memory", "32Mi"}})),
                                        container("b", {}, list({{"memory", "64Mi"}}))}));
  a.identity = facts::identity(IdentitySource::kSandbox, "");
  a.identity.sandbox_id = "infra";
  a.facts.resources.memory_limit = 32 * kMi;
  EXPECT_EQ(claim_of(a).source, ClassSource::kPodAnnotation);
}

/// Else it would count under a name that no container of the pod's record has, and never end.
TEST(ClaimForUntrusted, ARefusedSpecNamesNoContainer) {
  Arriving a = with_spec(pod_named_app(list({}), list({{"memory", "8Gi"}})));
  a.identity.container_name.clear();
  a.facts.resources = engine({.memory = 64 * kMi});
  PodClaim claim = claim_of(a);
  EXPECT_EQ(claim.container, "c1");
  EXPECT_THAT(claim.pod.containers, ElementsAre(Field(&Container::name, "c1")));
  a.settings.trust_annotations = TrustAnnotations::kNone;
  claim = claim_of(a);
  EXPECT_EQ(claim.container, "c1");
  EXPECT_THAT(claim.pod.containers, ElementsAre(Field(&Container::name, "c1")));
  a.facts.resources = {};
  a.settings.trust_annotations = TrustAnnotations::kAll;
  EXPECT_EQ(claim_of(a).container, "app");
}

ResourceList cpu(const char* text) {
  return list({{"cpu", text}});
}

TEST(InferResources, ReadsBackWhatTheEngineWrote) {
  struct Inferred {
    const char* name;
    EngineResources engine;
    Resources want;
    std::optional<std::int64_t> score = std::nullopt;  ///< also where no kubelet has set it
  };
  for (const auto& row : std::vector<Inferred>{
           {"Nothing", {}, {}},
           {"TwoSharesAreNoRequest", engine({.shares = 2}), {}},
           {"OneCpu", engine({.shares = 1024}), {cpu("1"), {}}},
           {"SharesRoundUp", engine({.shares = 102}), {cpu("100m"), {}}},
           {"ThreeShares", engine({.shares = 3}), {cpu("3m"), {}}},
           {"Quota", engine({.quota = 150'000, .period = 100'000}), {{}, cpu("1500m")}},
           {"QuotaOfTheDefaultPeriod", engine({.quota = 50'000}), {{}, cpu("500m")}},
           {"QuotaOfAnotherPeriod", engine({.quota = 5'000, .period = 10'000}), {{}, cpu("500m")}},
           {"NoQuota", engine({.quota = -1, .period = 100'000}), {}},
           {"AQuotaBelowOneMilli", engine({.quota = 1, .period = 1'000'000}), {{}, cpu("1m")}},
           {"SharesAboveTheLimit",
            engine({.shares = 2048, .quota = 100'000}),
            {cpu("1"), cpu("1")}},
           {"SharesAtTheLimit", engine({.shares = 1024, .quota = 100'000}), {cpu("1"), cpu("1")}},
           {"SharesBelowAnUnlimitedQuota", engine({.shares = 2048, .quota = -1}), {cpu("2"), {}}},
           {"APeriodThatCannotBe", engine({.quota = 1'000, .period = -1}), {}},
           {"Limit", engine({.memory = 4096}), {{}, memory("4096")}},
           {"NoLimit", engine({.memory = -1}), {}},
           {"NoLimitAsV1ShowsIt", engine({.memory = 9'223'372'036'854'771'712}), {}},
           {"NoReservationAsV1ShowsIt", engine({.reservation = 9'223'372'036'854'771'712}), {}},
           {"PodmansReservation",
            engine({.memory = 8192, .reservation = 4096}),
            {memory("4096"), memory("8192")}},
           {"ReservationOverScore", engine({.reservation = 4096}), {memory("4096"), {}}, 500},
           {"ReservationAboveTheLimit",
            engine({.memory = 4096, .reservation = 8192}),
            {memory("4096"), memory("4096")}},
           {"AKubeletsScore", {}, {memory("500000000"), {}}, 500},
           {"TheLargestScoreThatTells", {}, {memory("2000000"), {}}, 998},
           {"ALittleRequestOrNone", {}, {}, 999},
           {"BestEffort", {}, {}, 1000},
           {"TheSmallestScoreThatTells", {}, {memory("996000000"), {}}, 4},
           {"HeldAtThree", {}, {}, 3},
           {"Zero", {}, {}, 0},
           {"Sandbox", {}, {}, -998},
           {"GuaranteedRequestsItsLimit",
            engine({.memory = 4096}),
            {memory("4096"), memory("4096")},
            -997},
           {"GuaranteedWithoutALimit", {}, {}, -997},
           {"AScoreAboveTheLimit", engine({.memory = 4096}), {memory("4096"), memory("4096")}, 500},
           {"AScoreBeyondTheRange", {}, {}, 5'000'000'000},
       }) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(infer_resources(row.engine, row.score, kNodeMemory), row.want);
  }
}

TEST(InferResourcesScore, GivesTheSmallestRequestOfIt) {
  struct Score {
    const char* name;
    std::int64_t score;
    std::int64_t node;
    std::int64_t request;
  };
  for (const auto& row : std::vector<Score>{
           {"ANodeOf32Gi", 900, 34'359'738'368, 3'435'973'837},
           {"ANodeOf8Gi", 500, 8'589'934'592, 4'294'967'296},
           {"AnOddNode", 998, 1'000'003, 2'001},
           {"TheSmallestScore", 4, 1'000'003, 996'003},
       }) {
    SCOPED_TRACE(row.name);
    const auto inferred = infer_resources({}, row.score, Bytes{row.node});
    EXPECT_EQ(find(inferred.requests, "memory"), Quantity::from_units(row.request));
    EXPECT_EQ(1000 - 1000 * row.request / row.node, row.score);
    EXPECT_EQ(1000 - 1000 * (row.request - 1) / row.node, row.score + 1);
  }
}

TEST(InferResources, SurvivesTheEndsOfTheRange) {
  const auto inferred = infer_resources(engine({.shares = kInt64Max,
                                                .quota = kInt64Max,
                                                .period = 1,
                                                .memory = kInt64Max,
                                                .reservation = kInt64Max}),
                                        500, Bytes{kInt64Max});
  EXPECT_EQ(find(inferred.limits, "memory"), std::nullopt);
}

}  // namespace
}  // namespace podqos::core
