#include "common/core/pods/identity.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace podqos::core {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

constexpr std::string_view kOwnRoot = "/kubepods";
constexpr const char* kForeignPod = "/host/kubepods/burstable/pod-a-/c1";
constexpr const char* kOwnPod = "/kubepods/burstable/podearlier/c1";

ContainerFacts facts_of(std::string id, std::string bundle = "/b") {
  ContainerFacts facts;
  facts.id = std::move(id);
  facts.bundle = std::move(bundle);
  return facts;
}

// From the authors' own test vectors.
TEST(StableHash, IsFnv1a) {
  struct StableHashCase {
    const char* name;
    const char* text;
    const char* want;
  };
  for (const auto& row : std::vector<StableHashCase>{
           {"Nothing", "", "cbf29ce484222325"},
           {"OneLetter", "a", "af63dc4c8601ec8c"},
           {"AWord", "foobar", "85944171f73967e8"},
       }) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(stable_hash(row.text), row.want);
  }
}

struct Source {
  const char* name;
  std::optional<std::string> engine_uid;
  std::optional<std::string> sandbox;
  std::optional<std::string> annotated;
  std::optional<std::string> placed_at;
  const char* uid;
  IdentitySource source;
  bool placed = false;
  TrustAnnotations trust = TrustAnnotations::kEngineChecked;
};
class IdentifySource : public TestWithParam<Source> {};

TEST_P(IdentifySource, TakesTheStrongest) {
  const Source& row = GetParam();
  EngineAnnotations engine;
  engine.pod_uid = row.engine_uid;
  engine.sandbox_id = row.sandbox;
  PodqosAnnotations podqos;
  podqos.pod_uid = row.annotated;
  Settings settings;
  settings.trust_annotations = row.trust;
  const auto identity =
      identify(facts_of("c1"), {podqos, engine}, settings, row.placed_at, kOwnRoot);
  ASSERT_TRUE(identity) << identity.error().message;
  EXPECT_EQ(identity->uid, row.uid);
  EXPECT_EQ(identity->source, row.source);
  EXPECT_EQ(identity->placed.has_value(), row.placed);
  EXPECT_EQ(identity->sandbox_id, row.sandbox.value_or(""));
}

constexpr auto kNobody = std::nullopt;

INSTANTIATE_TEST_SUITE_P(
    Table, IdentifySource,
    ValuesIn<Source>({
        {"TheEnginesUid", "e", "s", kNobody, kNobody, "e", IdentitySource::kEngine},
        {"TheEnginesUidWithAnAnnotationThatAgrees", "e", "s", "e", kNobody, "e",
         IdentitySource::kEngine},
        {"APodCgroupWithDoubledSlashes", kNobody, kNobody, kNobody,
         "/host//kubepods//burstable//pod-a-//c1", "-a-", IdentitySource::kCgroup, true},
        {"TheSandboxOverOurOwnWorkWithDoubledSlashes", kNobody, "s", kNobody,
         "//kubepods/burstable/podearlier/c1", "s", IdentitySource::kSandbox},
        {"TheAnnotationInARelativePath", kNobody, kNobody, "a", "kubepods/burstable/podearlier/c1",
         "a", IdentitySource::kAnnotation},
        {"TheEnginesUidInItsPodCgroup", "-a-", "s", kNobody, kForeignPod, "-a-",
         IdentitySource::kEngine, true},
        {"TheEnginesUidOverOurOwnWork", "e", kNobody, kNobody, kOwnPod, "e",
         IdentitySource::kEngine},
        {"APodCgroup", kNobody, kNobody, kNobody, kForeignPod, "-a-", IdentitySource::kCgroup,
         true},
        {"APodCgroupOverTheSandbox", kNobody, "s", kNobody, kForeignPod, "-a-",
         IdentitySource::kCgroup, true},
        {"APodCgroupWithAnAnnotationThatAgrees", kNobody, kNobody, "-a-", kForeignPod, "-a-",
         IdentitySource::kCgroup, true},
        {"TheAnnotation", kNobody, kNobody, "a", kNobody, "a", IdentitySource::kAnnotation},
        {"TheAnnotationOverTheSandbox", kNobody, "s", "a", kNobody, "a",
         IdentitySource::kAnnotation},
        {"TheAnnotationInAnOrdinaryCgroup", kNobody, kNobody, "a", "/system.slice/x", "a",
         IdentitySource::kAnnotation},
        {"TheAnnotationOverOurOwnWork", kNobody, kNobody, "a", kOwnPod, "a",
         IdentitySource::kAnnotation},
        {"TheSandbox", kNobody, "s", kNobody, kNobody, "s", IdentitySource::kSandbox},
        {"TheSandboxOverOurOwnWork", kNobody, "s", kNobody, kOwnPod, "s", IdentitySource::kSandbox},
        {"TheSandboxWhereAnnotationsAreNotTrusted", kNobody, "s", "a", kNobody, "s",
         IdentitySource::kSandbox, false, TrustAnnotations::kNone},
        {"AKubeletsCgroupWhereAnnotationsAreNotTrusted", kNobody, kNobody, "a", kForeignPod, "-a-",
         IdentitySource::kCgroup, true, TrustAnnotations::kNone},
        {"TheEnginesUidWhereAnnotationsAreNotTrusted", "e", kNobody, "a", kNobody, "e",
         IdentitySource::kEngine, false, TrustAnnotations::kNone},
        {"ARootThatOnlyBeginsLikeOurs", kNobody, kNobody, kNobody,
         "/kubepods2/kubepods/besteffort/podz/c1", "z", IdentitySource::kCgroup, true},
    }),
    [](const TestParamInfo<Source>& row) { return std::string{row.param.name}; });

TEST(Identify, NamesTheKubeletsTierAndPod) {
  const auto identity = identify(facts_of("c1"), {}, {}, kForeignPod, kOwnRoot);
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->placed, (PodCgroup{.qos_class = QosClass::kBurstable,
                                         .uid = "-a-",
                                         .pod_path = "/host/kubepods/burstable/pod-a-"}));
}

TEST(Identify, TakesTheEnginesWordForNames) {
  EngineAnnotations engine;
  engine.pod_uid = "e";
  engine.sandbox_id = "s";
  engine.pod_name = "web";
  engine.pod_namespace = "shop";
  engine.container_name = "nginx";
  engine.is_sandbox = true;
  PodqosAnnotations podqos;
  podqos.container = "other";
  const auto identity = identify(facts_of("c1"), {podqos, engine}, {}, {}, kOwnRoot);
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->pod_name, "web");
  EXPECT_EQ(identity->pod_namespace, "shop");
  EXPECT_EQ(identity->container_name, "nginx");
  EXPECT_TRUE(identity->is_sandbox);
}

TEST(Identify, GivesASandboxNoNameFromItsPodsAnnotation) {
  EngineAnnotations engine;
  engine.sandbox_id = "s";
  engine.is_sandbox = true;
  PodqosAnnotations podqos;
  podqos.container = "nginx";
  const auto identity = identify(facts_of("s"), {podqos, engine}, {}, {}, kOwnRoot);
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->container_name, "");
}

TEST(Identify, TakesTheAnnotatedNameWhereTheEngineHasNone) {
  PodqosAnnotations podqos;
  podqos.container = "nginx";
  const auto identity = identify(facts_of("c1"), {podqos, {}}, {}, {}, kOwnRoot);
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->container_name, "nginx");
}

TEST(Identify, TakesNoAnnotatedNameWhereAnnotationsAreNotTrusted) {
  PodqosAnnotations podqos;
  podqos.container = "nginx";
  Settings settings;
  settings.trust_annotations = TrustAnnotations::kNone;
  const auto identity = identify(facts_of("c1"), {podqos, {}}, settings, {}, kOwnRoot);
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->container_name, "");
}

TEST(Identify, RefusesAPodCgroupThatIsNotTheEnginesPods) {
  EngineAnnotations engine;
  engine.pod_uid = "b";
  for (const auto trust : {TrustAnnotations::kEngineChecked, TrustAnnotations::kNone}) {
    Settings settings;
    settings.trust_annotations = trust;
    const auto identity = identify(facts_of("c1"), {{}, engine}, settings, kForeignPod, kOwnRoot);
    ASSERT_FALSE(identity);
    EXPECT_EQ(identity.error().code, ErrorCode::kConflict);
    EXPECT_THAT(identity.error().message,
                AllOf(HasSubstr("\"b\""), HasSubstr("/host/kubepods/burstable/pod-a-")));
  }
}

TEST(IdentifyContradiction, IsRefused) {
  struct Contradiction {
    const char* name;
    std::optional<std::string> engine_uid;
    std::optional<std::string> placed_at;
  };
  for (const auto& row : std::vector<Contradiction>{
           {"OfTheEngine", "-a-", std::nullopt},
           {"OfTheEngineOverOurOwnWork", "-a-", kOwnPod},
           {"OfAKubeletsCgroup", std::nullopt, kForeignPod},
       }) {
    SCOPED_TRACE(row.name);
    EngineAnnotations engine;
    engine.pod_uid = row.engine_uid;
    PodqosAnnotations podqos;
    podqos.pod_uid = "other";
    for (const auto trust : {TrustAnnotations::kEngineChecked, TrustAnnotations::kAll}) {
      Settings settings;
      settings.trust_annotations = trust;
      const auto identity =
          identify(facts_of("c1"), {podqos, engine}, settings, row.placed_at, kOwnRoot);
      ASSERT_FALSE(identity);
      EXPECT_EQ(identity.error().code, ErrorCode::kConflict);
      EXPECT_THAT(identity.error().message,
                  AllOf(HasSubstr("podqos.io/pod-uid \"other\""), HasSubstr("\"-a-\"")));
    }
  }
}

TEST(IdentifyBadUid, IsRefused) {
  struct BadUid {
    const char* name;
    std::string uid;
  };
  for (const auto& row : std::vector<BadUid>{
           {"Empty", ""},
           {"ASlash", "a/b"},
           {"Up", ".."},
           {"ADot", "."},
           {"ANul", std::string{"a\0b", 3}},
           {"ANewline", "a\nb"},
           {"AnUnderscore", "a_b"},
           {"ASpace", "a b"},
           {"Long", std::string(300, 'a')},
           {"OneTooMany", std::string(129, 'a')},
       }) {
    SCOPED_TRACE(row.name);
    PodqosAnnotations podqos;
    podqos.pod_uid = row.uid;
    const auto identity = identify(facts_of("c1"), {podqos, {}}, {}, {}, kOwnRoot);
    ASSERT_FALSE(identity);
    EXPECT_EQ(identity.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(Identify, TakesTheLongestUid) {
  PodqosAnnotations podqos;
  podqos.pod_uid = std::string(128, 'a');
  EXPECT_TRUE(identify(facts_of("c1"), {podqos, {}}, {}, {}, kOwnRoot));
}

std::string lone_uid_of(std::string id, std::string bundle) {
  const auto identity = identify(facts_of(std::move(id), std::move(bundle)), {}, {}, {}, kOwnRoot);
  if (!identity) {
    ADD_FAILURE() << identity.error().message;
    return {};
  }
  EXPECT_EQ(identity->source, IdentitySource::kLone);
  return identity->uid;
}

TEST(IdentifyLone, DerivesTheUidFromTheId) {
  const std::string uid = lone_uid_of("web.1", "/b");
  EXPECT_TRUE(uid.starts_with("web.1-"));
  EXPECT_EQ(uid.size(), std::string_view{"web.1-"}.size() + 16);
  EXPECT_EQ(lone_uid_of("web.1", "/b"), uid);
}

TEST(IdentifyLone, TellsTwoBundlesOfOneIdApart) {
  EXPECT_NE(lone_uid_of("web", "/a"), lone_uid_of("web", "/b"));
}

TEST(IdentifyLone, TellsIdsApartThatLookAlikeWhenEscaped) {
  EXPECT_NE(lone_uid_of("a_b", "/b"), lone_uid_of("a+b", "/b"));
  EXPECT_TRUE(lone_uid_of("a_b", "/b").starts_with("a-b-"));
}

TEST(IdentifyLone, KeepsIdAndBundleApart) {
  EXPECT_NE(lone_uid_of("a", "/b/c"), lone_uid_of("a/b", "/c"));
}

TEST(IdentifyLone, TellsLongIdsApart) {
  const std::string common(64, 'x');
  const std::string one = lone_uid_of(common + "1", "/b");
  EXPECT_NE(one, lone_uid_of(common + "2", "/b"));
  EXPECT_EQ(one.size(), 64U + 1 + 16);
}

TEST(IdentifyLone, NeedsNoSandbox) {
  const auto identity = identify(facts_of("c1"), {}, {}, "/system.slice/x", kOwnRoot);
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->sandbox_id, "");
  EXPECT_EQ(identity->placed, std::nullopt);
}

TEST(IdentifyLone, TakesNoPodFromOurOwnWork) {
  for (const char* path : {kOwnPod, "//kubepods/burstable/podearlier/c1",
                           "kubepods/burstable/podearlier/c1", "/kubepods//podearlier/c1"}) {
    const auto identity = identify(facts_of("c1"), {}, {}, path, kOwnRoot);
    ASSERT_TRUE(identity) << path;
    EXPECT_EQ(identity->placed, std::nullopt) << path;
    EXPECT_EQ(identity->source, IdentitySource::kLone) << path;
    EXPECT_EQ(identity->uid, lone_uid_of("c1", "/b")) << path;
  }
}

TEST(Identify, TakesTheUsualRootForAKubeletsWherePodqosHasMovedAside) {
  const auto identity = identify(facts_of("c1"), {}, {}, kOwnPod, "/podqos/kubepods");
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->uid, "earlier");
  ASSERT_TRUE(identity->placed);
  EXPECT_EQ(identity->placed->pod_path, "/kubepods/burstable/podearlier");
}

struct Concern {
  const char* name;
  bool pods;
  bool annotated;
  bool all;
  PodqosAnnotations podqos;
  EngineAnnotations engine;
  std::optional<std::string> placed_at = std::nullopt;
};
class ConcernsPodqos : public TestWithParam<Concern> {};

TEST_P(ConcernsPodqos, FollowsTheScope) {
  const Concern& row = GetParam();
  const auto concerns = [&](Scope scope) {
    Settings settings;
    settings.scope = scope;
    return is_managed(row.podqos, row.engine, settings, row.placed_at);
  };
  EXPECT_EQ(concerns(Scope::kPods), row.pods);
  EXPECT_EQ(concerns(Scope::kAnnotated), row.annotated);
  EXPECT_EQ(concerns(Scope::kAll), row.all);
}

TEST_P(ConcernsPodqos, NeverWhereItIsSwitchedOff) {
  for (const Scope scope : {Scope::kPods, Scope::kAnnotated, Scope::kAll}) {
    Settings settings;
    settings.scope = scope;
    settings.enabled = false;
    EXPECT_FALSE(is_managed(GetParam().podqos, GetParam().engine, settings, GetParam().placed_at));
  }
}

TEST_P(ConcernsPodqos, NeverWhereTheContainerOptsOut) {
  PodqosAnnotations podqos = GetParam().podqos;
  podqos.ignore = true;
  for (const Scope scope : {Scope::kPods, Scope::kAnnotated, Scope::kAll}) {
    Settings settings;
    settings.scope = scope;
    EXPECT_FALSE(is_managed(podqos, GetParam().engine, settings, GetParam().placed_at));
  }
}

/// Under a CRI engine annotations are those of the pod's author.
TEST(ConcernsPodqosUntrusted, NoAuthorOptsOut) {
  PodqosAnnotations podqos;
  podqos.ignore = true;
  EngineAnnotations engine;
  engine.cri = true;
  engine.pod_uid = "42";
  Settings settings;
  EXPECT_FALSE(is_managed(podqos, engine, settings, std::nullopt));
  settings.trust_annotations = TrustAnnotations::kNone;
  EXPECT_TRUE(is_managed(podqos, engine, settings, std::nullopt));
  engine.cri = false;
  EXPECT_FALSE(is_managed(podqos, engine, settings, std::nullopt));
}

template <class Fill>
PodqosAnnotations podqos_with(Fill fill) {
  PodqosAnnotations out;
  fill(out);
  return out;
}
template <class Fill>
EngineAnnotations engine_with(Fill fill) {
  EngineAnnotations out;
  fill(out);
  return out;
}

INSTANTIATE_TEST_SUITE_P(
    Table, ConcernsPodqos,
    ValuesIn<Concern>({
        {"AnOrdinaryContainer", false, false, true, {}, {}},
        {"APlainCgroup", false, false, true, {}, {}, "/system.slice/docker-1.scope"},
        {"TheKubepodsRootItself", false, false, true, {}, {}, "/kubepods"},
        {"AWayOutOfAPod", false, false, true, {}, {}, "/kubepods/pod1/../../system"},
        {"APodCgroup", true, false, true, {}, {}, "/kubepods/pod1/c1"},
        {"ASystemdPodCgroup",
         true,
         false,
         true,
         {},
         {},
         "/kubepods.slice/kubepods-pod1.slice/cri-containerd-c1.scope"},
        {"APodUid", true, true, true, podqos_with([](auto& a) { a.pod_uid = "u"; }), {}},
        {"AContainerName", true, true, true, podqos_with([](auto& a) { a.container = "c"; }), {}},
        {"AClass",
         true,
         true,
         true,
         podqos_with([](auto& a) { a.qos_class = QosClass::kBestEffort; }),
         {}},
        {"ASpec",
         true,
         true,
         true,
         podqos_with([](auto& a) { a.pod = std::make_shared<const Pod>(); }),
         {}},
        {"PodLevelResources",
         true,
         true,
         true,
         podqos_with([](auto& a) { a.pod_level = Resources{}; }),
         {}},
        {"ContainerResources",
         true,
         true,
         true,
         podqos_with([](auto& a) { a.containers["c"] = {}; }),
         {}},
        {"APodCgroupWithDoubledSlashes", true, false, true, {}, {}, "//kubepods//pod1/c1"},
        {"ARelativePodCgroup", false, false, true, {}, {}, "kubepods/pod1/c1"},
        {"AnEnginesUid", true, false, true, {}, engine_with([](auto& a) { a.pod_uid = "u"; })},
        {"ASandbox", true, false, true, {}, engine_with([](auto& a) { a.sandbox_id = "s"; })},
        {"APodNameAlone", false, false, true, {}, engine_with([](auto& a) { a.pod_name = "web"; })},
    }),
    [](const TestParamInfo<Concern>& row) { return std::string{row.param.name}; });

}  // namespace
}  // namespace podqos::core
