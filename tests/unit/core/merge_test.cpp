#include "common/core/pods/merge.h"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/core/pods/identity.h"
#include "tests/unit/core/facts.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using enum QosClass;
using pod_text::list;

// Claims as containers bring them one after the other, and the pods that merge_claim() makes of
// them.

/// A container whose limits are its requests.
Container full(const char* name) {
  const ResourceList both = list({{"cpu", "1"}, {"memory", "1Gi"}});
  return pod_text::container(name, both, both);
}

Container some(const char* name) {
  return pod_text::container(name, list({{"cpu", "100m"}}));
}

Container none(const char* name) {
  return pod_text::container(name, {});
}

PodClaim partial(Container first) {
  PodClaim claim;
  claim.known = true;
  claim.container = first.name;
  claim.pod = pod_text::pod({std::move(first)});
  claim.pod.uid = "42";
  return claim;
}

PodClaim whole(Container first) {
  PodClaim claim = partial(std::move(first));
  claim.complete = true;
  claim.source = ClassSource::kPodAnnotation;
  return claim;
}

Identity identity_in(std::string sandbox, std::string pod_namespace = "",
                     IdentitySource source = IdentitySource::kAnnotation) {
  Identity out = facts::identity(source);
  out.sandbox_id = std::move(sandbox);
  out.pod_namespace = std::move(pod_namespace);
  return out;
}

MergedPod join(const std::optional<PodRecord>& existing, const PodClaim& claim,
               const Settings& settings = {}) {
  auto joined = merge_claim(existing, identity_in(""), claim, settings);
  if (joined) return std::move(*joined);
  ADD_FAILURE() << joined.error().message;
  return {};
}

/// The pod after its first container, which lives.
PodRecord living(const PodClaim& claim, const Settings& settings = {}) {
  PodRecord record = join(std::nullopt, claim, settings).record;
  record.cgroup = "/kubepods/pod42";
  record.containers.emplace_back().id = "first";
  return record;
}

constexpr auto kSpecified = ClassSource::kPodAnnotation;
constexpr auto kDeclared = ClassSource::kQosAnnotation;
constexpr auto kInferred = ClassSource::kInference;

TEST(JoinPodFirst, FixesTheClass) {
  struct FirstClass {
    const char* name;
    PodClaim claim;
    std::optional<QosClass> declared;
    bool may_raise;
    QosClass want;
    ClassSource source;
    std::size_t warnings = 0;
  };
  for (const auto& row : std::vector<FirstClass>{
           {"WholeGuaranteed", whole(full("a")), {}, false, kGuaranteed, kSpecified},
           {"WholeBurstable", whole(some("a")), {}, false, kBurstable, kSpecified},
           {"WholeBestEffort", whole(none("a")), {}, false, kBestEffort, kSpecified},
           {"PartialIsNeverGuaranteed", partial(full("a")), {}, false, kBurstable, kInferred},
           {"PartialIsNotGuaranteedByOverride",
            partial(full("a")),
            {},
            true,
            kBurstable,
            kInferred},
           {"PartialBurstable", partial(some("a")), {}, false, kBurstable, kInferred},
           {"PartialBestEffort", partial(none("a")), {}, false, kBestEffort, kInferred},
           {"PartialDeclaredGuaranteed", partial(full("a")), kGuaranteed, false, kGuaranteed,
            kDeclared},
           {"PartialDeclaredGuaranteedButBurstable", partial(some("a")), kGuaranteed, false,
            kBurstable, kInferred, 1},
           {"LoweredToBurstable", whole(full("a")), kBurstable, false, kBurstable, kDeclared},
           {"LoweredToBestEffort", whole(full("a")), kBestEffort, false, kBestEffort, kDeclared},
           {"RaisedToGuaranteed", whole(some("a")), kGuaranteed, false, kBurstable, kSpecified, 1},
           {"RaisedFromBestEffort", whole(none("a")), kBurstable, false, kBestEffort, kSpecified,
            1},
           {"RaisedByTheOperatorsLeave", whole(none("a")), kGuaranteed, true, kGuaranteed,
            kDeclared},
           {"DeclaredAsItIs", whole(some("a")), kBurstable, false, kBurstable, kDeclared},
       }) {
    SCOPED_TRACE(row.name);
    PodClaim claim = row.claim;
    claim.declared_class = row.declared;
    Settings settings;
    settings.allow_qos_override = row.may_raise;
    const MergedPod joined = join(std::nullopt, claim, settings);
    EXPECT_EQ(joined.record.qos_class, row.want);
    EXPECT_EQ(joined.record.class_source, row.source);
    EXPECT_EQ(joined.record.complete, row.claim.complete);
    EXPECT_EQ(joined.warnings.size(), row.warnings);
  }
}

TEST(JoinPod, SaysWhyAClassIsRefused) {
  PodClaim claim = whole(some("a"));
  claim.declared_class = kGuaranteed;
  EXPECT_THAT(join(std::nullopt, claim).warnings,
              ElementsAre(AllOf(HasSubstr("podqos.io/qos-class \"Guaranteed\" refused"),
                                HasSubstr("Burstable"), HasSubstr("allowQosOverride"))));
}

TEST(JoinPod, TakesAKubeletsClassAsItIs) {
  for (const QosClass placed : {kGuaranteed, kBurstable, kBestEffort}) {
    PodClaim claim = partial(some("a"));
    claim.engine_class = placed;
    EXPECT_THAT(join(std::nullopt, claim).warnings, IsEmpty());
    claim.declared_class = kBestEffort;
    const MergedPod joined = join(std::nullopt, claim);
    EXPECT_EQ(joined.record.qos_class, placed);
    EXPECT_EQ(joined.record.class_source, ClassSource::kEngine);
    if (placed == kBestEffort) {
      EXPECT_THAT(joined.warnings, IsEmpty());
    } else {
      EXPECT_THAT(joined.warnings,
                  ElementsAre(AllOf(
                      HasSubstr("podqos.io/qos-class \"BestEffort\" refused"),
                      HasSubstr(cat("the engine runs the pod as ", format_qos_class(placed))))));
    }
  }
}

TEST(JoinPod, SaysThatADeclaredClassComesTooLate) {
  PodClaim second = partial(some("b"));
  second.declared_class = kBestEffort;
  const MergedPod joined = join(living(partial(some("a"))), second);
  EXPECT_EQ(joined.record.qos_class, kBurstable);
  EXPECT_THAT(joined.warnings,
              ElementsAre(AllOf(HasSubstr("podqos.io/qos-class \"BestEffort\" is too late"),
                                HasSubstr("Burstable"))));
}

TEST(JoinPod, KeepsTheClassOfTheFirstContainer) {
  const MergedPod joined = join(living(partial(none("a"))), partial(some("b")));
  EXPECT_EQ(joined.record.qos_class, kBestEffort);
  EXPECT_THAT(joined.warnings, ElementsAre(AllOf(HasSubstr("Burstable"), HasSubstr("BestEffort"),
                                                 HasSubstr("podqosctl annotate"))));
}

TEST(JoinPod, PassesOnWhatTheClaimWarnsOf) {
  PodClaim claim = whole(some("a"));
  claim.warnings = {"refused"};
  EXPECT_THAT(join(std::nullopt, claim).warnings, ElementsAre("refused"));
}

TEST(JoinPod, CollectsTheContainersOfAPartialPod) {
  const PodRecord record = join(living(partial(some("a"))), partial(some("b"))).record;
  EXPECT_THAT(record.pod.containers, ElementsAre(some("a"), some("b")));
  EXPECT_FALSE(record.complete);
}

TEST(JoinPod, LetsARestartedContainerReplaceItself) {
  const MergedPod joined = join(living(partial(some("a"))), partial(none("a")));
  EXPECT_THAT(joined.record.pod.containers, ElementsAre(none("a")));
  EXPECT_THAT(joined.warnings, IsEmpty());
}

/// A pod of containers that have started, each with this name in the pod.
PodRecord running(const PodClaim& claim, std::vector<std::string> names) {
  PodRecord record = living(claim);
  record.containers.clear();
  for (std::string& name : names) {
    ContainerRecord& container = record.containers.emplace_back();
    container.id = container.name = std::move(name);
    container.state = ContainerState::kLive;
  }
  return record;
}

TEST(JoinPod, LetsNoContainerReplaceAnotherOfItsName) {
  const MergedPod second = join(running(partial(some("a")), {"a"}), partial(none("a")));
  EXPECT_EQ(second.container, "a-2");
  EXPECT_THAT(second.record.pod.containers, ElementsAre(some("a"), none("a-2")));
  const MergedPod third = join(running(partial(some("a")), {"a", "a-2"}), partial(some("a")));
  EXPECT_EQ(third.container, "a-3");
}

TEST(JoinPod, LeavesContainersOfASpecTheirNames) {
  EXPECT_EQ(join(running(whole(some("a")), {"a"}), whole(some("a"))).container, "a");
  EXPECT_EQ(join(running(partial(some("a")), {"a"}), whole(some("a"))).container, "a");
}

/// podqos.io/limits.a of the container b, or of the whole sandbox.
TEST(JoinPod, LetsNoContainerDescribeAnotherAnew) {
  PodClaim claim = partial(some("b"));
  claim.pod.containers.push_back(none("a"));
  claim.pod.containers.push_back(none("c"));
  const MergedPod joined = join(running(partial(some("a")), {"a"}), claim);
  EXPECT_THAT(joined.record.pod.containers, ElementsAre(some("a"), some("b"), none("c")));
}

TEST(JoinPod, LetsASpecCompleteAPartialPod) {
  const MergedPod joined = join(living(partial(none("a"))), whole(full("a")));
  EXPECT_TRUE(joined.record.complete);
  EXPECT_EQ(joined.record.pod, whole(full("a")).pod);
  EXPECT_EQ(joined.record.qos_class, kBestEffort);
  EXPECT_EQ(joined.warnings.size(), 1U);
}

TEST(JoinPod, KeepsTheFirstOfTwoSpecs) {
  const MergedPod joined = join(living(whole(some("a"))), whole(none("a")));
  EXPECT_EQ(joined.record.pod, whole(some("a")).pod);
  EXPECT_THAT(joined.warnings, ElementsAre(HasSubstr("which applies until the pod has ended")));
}

TEST(JoinPod, AddsNothingToAWholePod) {
  const PodRecord record = join(living(whole(some("a"))), partial(some("b"))).record;
  EXPECT_THAT(record.pod.containers, ElementsAre(some("a")));
}

/// podqos.io/limits of the pod, as the container `name` tells it.
PodClaim sums(const char* name, const char* limit) {
  PodClaim claim = whole(none(name));
  claim.source = ClassSource::kShortForms;
  claim.pod.resources = Resources{.requests = {}, .limits = list({{"cpu", limit}})};
  return claim;
}

TEST(JoinPod, SaysWhenAContainerDescribesAWholePodOtherwise) {
  const PodRecord known = living(whole(some("a")));
  EXPECT_THAT(join(known, whole(some("a"))).warnings, IsEmpty());
  EXPECT_THAT(join(known, whole(some("b"))).warnings,
              ElementsAre(HasSubstr("pod spec differs from the first container's")));
}

/// A pod of a CRI engine, of which every container has the annotations of its sandbox.
TEST(JoinPod, GivesAReplacedContainerItsSpecAgainAfterAResize) {
  PodClaim claim = whole(full("a"));
  claim.pod.containers.push_back(full("b"));
  claim.runs_as_specified = true;
  PodRecord resized = living(claim);
  for (Container& container : resized.pod.containers)
    container.resources.limits = list({{"cpu", "500m"}, {"memory", "512Mi"}});
  Identity engines = identity_in("", "", IdentitySource::kEngine);
  engines.container_name = "a";
  resized.uid_source = IdentitySource::kEngine;
  const auto joined = merge_claim(resized, engines, claim, {});
  ASSERT_TRUE(joined) << joined.error().message;
  EXPECT_THAT(joined->warnings, IsEmpty());
  EXPECT_EQ(joined->record.pod.containers[0], full("a"));
  // This one still runs as it was resized.
  EXPECT_EQ(joined->record.pod.containers[1], resized.pod.containers[1]);
}

TEST(JoinPod, ExpectsTheSameSumsOfAllContainersAndNotTheSameContainers) {
  const PodRecord known = living(sums("a", "1"));
  EXPECT_THAT(join(known, sums("b", "1")).warnings, IsEmpty());
  EXPECT_THAT(join(known, sums("b", "2")).warnings,
              ElementsAre(HasSubstr("pod spec differs from the first container's")));
}

TEST(JoinPod, LearnsNothingFromASandbox) {
  PodClaim sandbox;
  sandbox.declared_class = kBestEffort;
  const PodRecord before = living(partial(some("a")));
  const MergedPod joined = join(before, sandbox);
  EXPECT_EQ(joined.record, before);
  EXPECT_THAT(joined.warnings, IsEmpty());
}

TEST(JoinPod, StartsAnewUnderTheUidOfAPodThatHasEnded) {
  PodRecord ended = living(whole(full("a")));
  ended.containers.clear();
  ended.released_at = BootSeconds{1};
  ended.counted_request.cpu = MilliCpu{1000};
  const PodRecord record = join(ended, partial(none("b"))).record;
  EXPECT_EQ(record.qos_class, kBestEffort);
  EXPECT_FALSE(record.complete);
  EXPECT_EQ(record.released_at, std::nullopt);
  EXPECT_EQ(record.cgroup, "");
  EXPECT_THAT(record.pod.containers, ElementsAre(none("b")));
}

TEST(JoinPod, WakesAnEndedPodForASandboxThatKnowsNothing) {
  PodRecord ended = living(whole(full("a")));
  ended.containers.clear();
  ended.released_at = BootSeconds{1};
  const PodRecord record = join(ended, PodClaim{}).record;
  EXPECT_EQ(record.released_at, std::nullopt);
  EXPECT_EQ(record.pod, ended.pod);
}

TEST(JoinPod, TakesNamesFromWhoeverTellsThemFirst) {
  const PodRecord first = living(partial(some("a")));
  Identity identity = identity_in("");
  identity.engine = Engine::kPodman;
  identity.pod_id = "2f61";
  PodClaim claim = partial(some("b"));
  claim.pod.name = "mixed";
  claim.pod.pod_namespace = "shop";
  PodRecord second = merge_claim(first, identity, claim, {})->record;
  EXPECT_EQ(second.engine, Engine::kPodman);
  EXPECT_EQ(second.pod_id, "2f61");
  EXPECT_EQ(second.pod.name, "mixed");
  EXPECT_EQ(second.pod.pod_namespace, "shop");
  identity.engine = Engine::kDocker;
  identity.pod_id = std::nullopt;
  claim.pod.name = "other";
  const PodRecord third = merge_claim(second, identity, claim, {})->record;
  EXPECT_EQ(third.engine, Engine::kPodman);
  EXPECT_EQ(third.pod_id, "2f61");
  EXPECT_EQ(third.pod.name, "mixed");
}

/// createRuntime has no hostname, and Podman's precreate has.
TEST(JoinPod, TakesASpecWithAnotherNameForTheSame) {
  PodClaim named = whole(some("a"));
  named.pod.name = "web";
  named.pod.pod_namespace = "shop";
  const MergedPod again = join(living(named), whole(some("a")));
  EXPECT_THAT(again.warnings, IsEmpty());
  EXPECT_EQ(again.record.pod.name, "web");
  EXPECT_EQ(again.record.pod.pod_namespace, "shop");
}

TEST(JoinPod, KeepsTheNamespaceOfAPodThatIsCompleted) {
  PodRecord before = living(partial(none("a")));
  before.pod.pod_namespace = "shop";
  EXPECT_EQ(join(before, whole(full("a"))).record.pod.pod_namespace, "shop");
}

Identity of_engine(std::string sandbox, std::string pod_namespace = "") {
  return identity_in(std::move(sandbox), std::move(pod_namespace), IdentitySource::kEngine);
}
Identity of_cgroup(std::string sandbox) {
  return identity_in(std::move(sandbox), "", IdentitySource::kCgroup);
}
Identity of_sandbox(std::string sandbox) {
  return identity_in(std::move(sandbox), "", IdentitySource::kSandbox);
}
Identity lone() {
  return identity_in("", "", IdentitySource::kLone);
}

TEST(JoinPodOwner, IsRespectedUntilThePodHasEnded) {
  struct Owner {
    const char* name;
    Identity first;
    Identity second;
    bool joins;
  };
  for (const auto& row : std::vector<Owner>{
           {"NoSandboxAtAll", identity_in(""), identity_in(""), true},
           {"TheSameSandbox", identity_in("s1"), identity_in("s1"), true},
           {"AnotherSandbox", identity_in("s1"), identity_in("s2"), false},
           {"AStrangerToTheSandbox", identity_in("s1"), identity_in(""), false},
           {"ASandboxToAStranger", identity_in(""), identity_in("s2"), false},
           {"AnotherNamespace", identity_in("", "shop"), identity_in("", "evil"), false},
           {"TheSameNamespace", identity_in("", "shop"), identity_in("", "shop"), true},
           {"AnotherNamespaceOfTheSameSandbox", identity_in("s1", "a"), identity_in("s1", "b"),
            false},
           {"NoNamespace", identity_in("", "shop"), identity_in(""), true},
           {"ANewerSandboxByTheEnginesWord", of_engine("s1"), of_engine("s2"), true},
           {"AnAnnotationToAnEnginesPod", of_engine("s1"), identity_in(""), false},
           {"ALoneContainerToASandbox", identity_in("s1"), lone(), false},
           {"ALoneContainerToWhoClaimedItsUid", identity_in(""), lone(), false},
           {"ALoneContainerToAnother", lone(), lone(), false},
           {"AnAnnotationToALoneContainer", lone(), identity_in(""), false},
           {"TheEngineToALoneContainer", lone(), of_engine("s1"), false},
           {"AnAnnotationToAnEnginesPodWithoutSandbox", of_engine(""), identity_in(""), false},
           {"AnAnnotationToAnEnginesSandbox", of_engine("s1"), identity_in("s2"), false},
           {"AnAnnotationInAnEnginesOwnSandbox", of_engine("s1"), identity_in("s1"), true},
           {"AnAnnotationToAKubeletsPod", of_cgroup(""), identity_in(""), false},
           {"AnAnnotationToASandboxsPod", of_sandbox("s1"), identity_in("s2"), false},
           {"AnAnnotationInItsOwnSandbox", of_sandbox("s1"), identity_in("s1"), true},
           {"TheEngineToWhoClaimedItsUid", identity_in(""), of_engine("s1"), false},
           {"TheEngineToAnothersSandbox", identity_in("s2"), of_engine("s1"), false},
           {"TheEngineInOneSandbox", identity_in("s1"), of_engine("s1"), true},
           {"AKubeletsToWhoClaimedItsUid", identity_in(""), of_cgroup(""), false},
           {"ASandboxToWhoClaimedItsId", identity_in("s2"), of_sandbox("s1"), false},
           {"ASandboxsSecondContainer", of_sandbox("s1"), of_sandbox("s1"), true},
           {"TheEngineAndACgroupKnowOnePod", of_engine("s1"), of_cgroup(""), true},
           {"AnotherNamespaceByTheEnginesWord", of_engine("s1", "a"), of_engine("s2", "b"), false},
           {"TheSameNamespaceByTheEnginesWord", of_engine("s1", "a"), of_engine("s2", "a"), true},
       }) {
    SCOPED_TRACE(row.name);
    auto first = merge_claim(std::nullopt, row.first, whole(some("a")), {});
    ASSERT_TRUE(first);
    PodRecord& record = first->record;
    EXPECT_TRUE(merge_claim(record, row.second, whole(some("a")), {}));
    record.pod.pod_namespace = row.first.pod_namespace;
    record.containers.emplace_back().id = "first";
    const auto joined = merge_claim(record, row.second, whole(some("a")), {});
    ASSERT_EQ(joined.has_value(), row.joins);
    if (joined) continue;
    EXPECT_EQ(joined.error().code, ErrorCode::kConflict);
    EXPECT_THAT(joined.error().message, HasSubstr("\"42\""));
  }
}

TEST(JoinPod, SaysWhoHoldsTheUidOfAnEnginesPod) {
  PodRecord squatted = merge_claim(std::nullopt, identity_in("s2"), whole(some("a")), {})->record;
  squatted.containers.emplace_back().id = "first";
  const auto joined = merge_claim(squatted, of_engine("s1"), whole(some("a")), {});
  ASSERT_FALSE(joined);
  EXPECT_THAT(joined.error().message,
              AllOf(HasSubstr("\"42\""), HasSubstr("sandbox \"s2\""), HasSubstr("sandbox \"s1\""),
                    HasSubstr("podqos.io/pod-uid claims this uid")));
}

TEST(JoinPod, JoinsTheCgroupThatTheContainerLiesIn) {
  PodRecord record = living(whole(some("a")));
  Identity there = of_cgroup("");
  there.placed = facts::kubelet_pod(kBurstable);
  there.placed->pod_path = record.cgroup;
  EXPECT_TRUE(merge_claim(record, there, whole(some("a")), {}));
}

/// One of the two has the uid by mistake or by intent: the kubelet's container stays where it is.
TEST(JoinPod, RefusesAKubeletsContainerInAPodOfPodqosItself) {
  PodRecord record = living(whole(some("a")));
  record.uid_source = IdentitySource::kEngine;
  Identity kubelets = of_engine("s1");
  kubelets.placed = facts::kubelet_pod(kBurstable);
  const auto joined = merge_claim(record, kubelets, whole(some("a")), {});
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code, ErrorCode::kConflict);
  EXPECT_THAT(joined.error().message, HasSubstr("is in the kubelet's pod cgroup"));
  record.kubelets_own = true;
  EXPECT_TRUE(merge_claim(record, kubelets, whole(some("a")), {}));
}

/// Its cgroup lingers, and a kubelet brings a pod of the same uid, whose sandbox says nothing.
TEST(JoinPod, BeginsAnewWhereAKubeletBringsThePodOfAnEndedOne) {
  PodRecord ended = living(whole(some("a")));
  ended.containers.clear();
  Identity kubelets = of_engine("s1");
  kubelets.placed = facts::kubelet_pod(kBurstable);
  const auto joined = merge_claim(ended, kubelets, PodClaim{}, {});
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->record.cgroup, "");
  EXPECT_THAT(joined->record.pod.containers, IsEmpty());
}

TEST(JoinPod, NamesTheFounderAnewOnceThePodHasEnded) {
  PodRecord ended = living(whole(some("a")));
  ended.containers.clear();
  EXPECT_EQ(merge_claim(ended, of_engine("s1"), PodClaim{}, {})->record.uid_source,
            IdentitySource::kEngine);
  EXPECT_EQ(merge_claim(ended, of_engine("s1"), partial(some("a")), {})->record.uid_source,
            IdentitySource::kEngine);
}

TEST(JoinPod, RemembersTheNewestSandbox) {
  const auto first = merge_claim(std::nullopt, of_engine("s1"), whole(some("a")), {});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->record.sandbox_id, "s1");
  PodRecord before = first->record;
  before.containers.emplace_back().id = "first";
  const auto joined = merge_claim(before, of_engine("s2"), whole(some("a")), {});
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->record.sandbox_id, "s2");
}

constexpr const char* kPod = "/podqos/kubepods/burstable/poda";

constexpr auto kAbsent = CgroupOrigin::kNone;
constexpr auto kCopied = CgroupOrigin::kPodqos;
constexpr auto kNew = CgroupOrigin::kEngine;
constexpr auto kForeign = CgroupOrigin::kOther;

AdmissionRequest request(std::optional<std::string> placed_at = std::nullopt) {
  AdmissionRequest request;
  request.placed_at = std::move(placed_at);
  return request;
}

PodRecord record(bool kubelets_own, const char* cgroup = kPod) {
  PodRecord record;
  record.kubelets_own = kubelets_own;
  record.cgroup = cgroup;
  return record;
}

TEST(IsForeignCgroup, IsToldByTheCopyElseTheRecordElseTheValues) {
  EXPECT_FALSE(is_foreign_cgroup(kPod, kCopied, record(true)));
  EXPECT_FALSE(is_foreign_cgroup(kPod, kForeign, record(false)));
  EXPECT_TRUE(is_foreign_cgroup(kPod, kNew, record(true)));
  // A record with another cgroup says nothing about this one.
  EXPECT_FALSE(is_foreign_cgroup(kPod, kNew, record(true, "/elsewhere/poda")));
  EXPECT_TRUE(is_foreign_cgroup(kPod, kForeign, std::nullopt));
  EXPECT_FALSE(is_foreign_cgroup(kPod, kNew, std::nullopt));
  EXPECT_FALSE(is_foreign_cgroup(kPod, kAbsent, std::nullopt));
}

TEST(MustOwnCgroup, OnlyForAPodOfItsOwnThatIsNewThere) {
  EXPECT_TRUE(must_own_cgroup(std::nullopt, record(false)));
  EXPECT_TRUE(must_own_cgroup(record(true), record(false)));
  EXPECT_TRUE(must_own_cgroup(record(false, "/elsewhere/poda"), record(false)));
  EXPECT_FALSE(must_own_cgroup(record(false), record(false)));
  EXPECT_FALSE(must_own_cgroup(std::nullopt, record(true)));
}

TEST(CheckPodCgroup, AdmitsToWhatPodqosMadeOrMayMake) {
  EXPECT_TRUE(check_pod_cgroup(record(false), kAbsent, request()));
  EXPECT_TRUE(check_pod_cgroup(record(false), kCopied, request()));
  // Made by the container's runtime, because its config.json names it.
  EXPECT_TRUE(check_pod_cgroup(record(false), kNew, request("/podqos/kubepods/burstable/poda/c")));
}

TEST(CheckPodCgroup, RefusesACgroupOfAnotherProgram) {
  for (const auto& [origin, placed_at] :
       {std::pair{kNew, "/elsewhere/c"}, std::pair{kForeign, "/podqos/kubepods/burstable/poda/c"},
        std::pair{kNew, "/podqos/kubepods/burstable/podab/c"}}) {
    const auto refused = check_pod_cgroup(record(false), origin, request(placed_at));
    ASSERT_FALSE(refused) << placed_at;
    EXPECT_EQ(refused.error().code, ErrorCode::kConflict);
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr(kPod), HasSubstr("not created by podqos"),
                                               HasSubstr("another uid")));
  }
}

/// A claim that names containers [begin, end).
PodClaim claim_naming(std::size_t begin, std::size_t end) {
  PodClaim claim = partial(none("c"));
  claim.pod.containers.clear();
  for (std::size_t i = begin; i < end; ++i)
    claim.pod.containers.push_back(pod_text::container(cat("c", i), {}));
  return claim;
}

TEST(MergeClaim, BoundsTheContainersOfAPodWithoutASpec) {
  constexpr std::size_t kMost = 256;
  const PodRecord record = living(claim_naming(0, kMost));
  EXPECT_TRUE(merge_claim(record, identity_in(""), claim_naming(0, kMost), {}));
  for (const auto& joined :
       {merge_claim(record, identity_in(""), claim_naming(kMost, kMost + 1), {}),
        merge_claim(std::nullopt, identity_in(""), claim_naming(0, kMost + 1), {})}) {
    ASSERT_FALSE(joined);
    EXPECT_EQ(joined.error().code, ErrorCode::kTooLarge);
    EXPECT_THAT(joined.error().message, HasSubstr("257 containers"));
  }
  PodClaim spec = claim_naming(0, 1000);
  spec.complete = true;
  EXPECT_TRUE(merge_claim(std::nullopt, identity_in(""), spec, {}));
}

}  // namespace
}  // namespace podqos::core
