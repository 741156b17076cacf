#include "common/core/pods/identity.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/facts.h"

namespace podqos::core {
namespace {

using facts::container_facts;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::string_view kOwnRoot = "/kubepods";
constexpr const char* kForeignPod = "/host/kubepods/burstable/pod-a-/c1";
constexpr const char* kOwnPod = "/kubepods/burstable/podearlier/c1";

/// A container "c1" as its annotations, its engine and its cgroup tell of it.
struct Told {
  PodqosAnnotations podqos = {};
  EngineAnnotations engine = {};
  Settings settings = {};
  std::optional<std::string> placed_at = std::nullopt;
  std::string bundle = "/b";

  [[nodiscard]] Result<Identity> identify(std::string id = "c1",
                                          std::string_view own_root = kOwnRoot) const {
    return core::identify({.facts = container_facts(std::move(id), bundle),
                           .podqos = podqos,
                           .engine = engine,
                           .placed_at = placed_at},
                          settings, own_root);
  }
  /// Its identity, which must be found.
  [[nodiscard]] Identity identity(std::string id = "c1") const {
    auto found = identify(std::move(id));
    if (found) return *std::move(found);
    ADD_FAILURE() << found.error().message;
    return {};
  }
  [[nodiscard]] bool is_managed() const {
    return core::is_managed(podqos, engine, settings, placed_at);
  }
};

constexpr auto kUnset = std::nullopt;

TEST(Identify, TakesTheStrongestSource) {
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
  for (const auto& row : std::vector<Source>{
           {"TheEnginesUid", "e", "s", kUnset, kUnset, "e", IdentitySource::kEngine},
           {"TheEnginesUidWithAnAnnotationThatAgrees", "e", "s", "e", kUnset, "e",
            IdentitySource::kEngine},
           {"APodCgroupWithDoubledSlashes", kUnset, kUnset, kUnset,
            "/host//kubepods//burstable//pod-a-//c1", "-a-", IdentitySource::kCgroup, true},
           {"TheSandboxOverOurOwnWorkWithDoubledSlashes", kUnset, "s", kUnset,
            "//kubepods/burstable/podearlier/c1", "s", IdentitySource::kSandbox},
           {"TheAnnotationInARelativePath", kUnset, kUnset, "a", "kubepods/burstable/podearlier/c1",
            "a", IdentitySource::kAnnotation},
           {"TheEnginesUidInItsPodCgroup", "-a-", "s", kUnset, kForeignPod, "-a-",
            IdentitySource::kEngine, true},
           {"TheEnginesUidOverOurOwnWork", "e", kUnset, kUnset, kOwnPod, "e",
            IdentitySource::kEngine},
           {"APodCgroup", kUnset, kUnset, kUnset, kForeignPod, "-a-", IdentitySource::kCgroup,
            true},
           {"APodCgroupOverTheSandbox", kUnset, "s", kUnset, kForeignPod, "-a-",
            IdentitySource::kCgroup, true},
           {"APodCgroupWithAnAnnotationThatAgrees", kUnset, kUnset, "-a-", kForeignPod, "-a-",
            IdentitySource::kCgroup, true},
           {"TheAnnotation", kUnset, kUnset, "a", kUnset, "a", IdentitySource::kAnnotation},
           {"TheAnnotationOverTheSandbox", kUnset, "s", "a", kUnset, "a",
            IdentitySource::kAnnotation},
           {"TheAnnotationInAnOrdinaryCgroup", kUnset, kUnset, "a", "/system.slice/x", "a",
            IdentitySource::kAnnotation},
           {"TheAnnotationOverOurOwnWork", kUnset, kUnset, "a", kOwnPod, "a",
            IdentitySource::kAnnotation},
           {"TheSandbox", kUnset, "s", kUnset, kUnset, "s", IdentitySource::kSandbox},
           {"TheSandboxOverOurOwnWork", kUnset, "s", kUnset, kOwnPod, "s",
            IdentitySource::kSandbox},
           {"TheSandboxWhereAnnotationsAreNotTrusted", kUnset, "s", "a", kUnset, "s",
            IdentitySource::kSandbox, false, TrustAnnotations::kNone},
           {"AKubeletsCgroupWhereAnnotationsAreNotTrusted", kUnset, kUnset, "a", kForeignPod, "-a-",
            IdentitySource::kCgroup, true, TrustAnnotations::kNone},
           {"TheEnginesUidWhereAnnotationsAreNotTrusted", "e", kUnset, "a", kUnset, "e",
            IdentitySource::kEngine, false, TrustAnnotations::kNone},
           {"ARootThatOnlyBeginsLikeOurs", kUnset, kUnset, kUnset,
            "/kubepods2/kubepods/besteffort/podz/c1", "z", IdentitySource::kCgroup, true},
       }) {
    SCOPED_TRACE(row.name);
    Told told{.placed_at = row.placed_at};
    told.engine.pod_uid = row.engine_uid;
    told.engine.sandbox_id = row.sandbox;
    told.podqos.pod_uid = row.annotated;
    told.settings.trust_annotations = row.trust;
    const Identity identity = told.identity();
    EXPECT_EQ(identity.uid, row.uid);
    EXPECT_EQ(identity.source, row.source);
    EXPECT_EQ(identity.placed.has_value(), row.placed);
    EXPECT_EQ(identity.sandbox_id, row.sandbox.value_or(""));
  }
}

TEST(Identify, NamesTheKubeletsTierAndPod) {
  EXPECT_EQ(Told{.placed_at = kForeignPod}.identity().placed,
            (PodCgroup{.qos_class = QosClass::kBurstable,
                       .uid = "-a-",
                       .pod_path = "/host/kubepods/burstable/pod-a-"}));
}

TEST(Identify, TakesTheEnginesWordForNames) {
  Told told;
  told.engine.pod_uid = "e";
  told.engine.sandbox_id = "s";
  told.engine.pod_name = "web";
  told.engine.pod_namespace = "shop";
  told.engine.container_name = "nginx";
  told.engine.is_sandbox = true;
  told.podqos.container = "other";
  const Identity identity = told.identity();
  EXPECT_EQ(identity.pod_name, "web");
  EXPECT_EQ(identity.pod_namespace, "shop");
  EXPECT_EQ(identity.container_name, "nginx");
  EXPECT_TRUE(identity.is_sandbox);
}

TEST(Identify, TakesTheAnnotatedNameWhereTheEngineHasNone) {
  Told told;
  told.podqos.container = "nginx";
  EXPECT_EQ(told.identity().container_name, "nginx");
  // Engines copy it to the pod's sandbox.
  told.engine.is_sandbox = true;
  EXPECT_EQ(told.identity().container_name, "");
  told.engine.is_sandbox = false;
  told.settings.trust_annotations = TrustAnnotations::kNone;
  EXPECT_EQ(told.identity().container_name, "");
}

TEST(Identify, RefusesAPodCgroupThatIsNotTheEnginesPods) {
  Told told{.placed_at = kForeignPod};
  told.engine.pod_uid = "b";
  for (const auto trust : {TrustAnnotations::kEngineChecked, TrustAnnotations::kNone}) {
    told.settings.trust_annotations = trust;
    const auto identity = told.identify();
    ASSERT_FALSE(identity);
    EXPECT_EQ(identity.error().code, ErrorCode::kConflict);
    EXPECT_THAT(identity.error().message,
                AllOf(HasSubstr("\"b\""), HasSubstr("/host/kubepods/burstable/pod-a-")));
  }
}

TEST(Identify, RefusesAnAnnotationThatContradicts) {
  struct Contradiction {
    const char* name;
    std::optional<std::string> engine_uid;
    std::optional<std::string> placed_at;
  };
  for (const auto& row : std::vector<Contradiction>{
           {"TheEngine", "-a-", std::nullopt},
           {"TheEngineOverOurOwnWork", "-a-", kOwnPod},
           {"AKubeletsCgroup", std::nullopt, kForeignPod},
       }) {
    SCOPED_TRACE(row.name);
    Told told{.placed_at = row.placed_at};
    told.engine.pod_uid = row.engine_uid;
    told.podqos.pod_uid = "other";
    for (const auto trust : {TrustAnnotations::kEngineChecked, TrustAnnotations::kAll}) {
      told.settings.trust_annotations = trust;
      const auto identity = told.identify();
      ASSERT_FALSE(identity);
      EXPECT_EQ(identity.error().code, ErrorCode::kConflict);
      EXPECT_THAT(identity.error().message,
                  AllOf(HasSubstr("podqos.io/pod-uid \"other\""), HasSubstr("\"-a-\"")));
    }
  }
}

/// See CheckPodUid for the others.
TEST(Identify, RefusesAUidThatCannotBeInAName) {
  for (const char* uid : {"", "a/b", ".."}) {
    Told told;
    told.podqos.pod_uid = uid;
    const auto identity = told.identify();
    ASSERT_FALSE(identity);
    EXPECT_EQ(identity.error().code, ErrorCode::kInvalidArgument);
  }
}

std::string lone_uid_of(const std::string& id, const std::string& bundle) {
  const Identity identity = Told{.bundle = bundle}.identity(id);
  EXPECT_EQ(identity.source, IdentitySource::kLone);
  return identity.uid;
}

TEST(IdentifyLone, DerivesTheUidFromIdAndBundle) {
  // The 64-bit FNV-1a of "c1\n/b".
  EXPECT_EQ(lone_uid_of("c1", "/b"), "c1-f4ac0ccb5b6f64d0");
  EXPECT_TRUE(lone_uid_of("a_b", "/b").starts_with("a-b-"));
  const std::string common(64, 'x');
  EXPECT_EQ(lone_uid_of(common + "1", "/b").size(), 64U + 1 + 16);
  EXPECT_NE(lone_uid_of("web", "/a"), lone_uid_of("web", "/b"));
  EXPECT_NE(lone_uid_of("a_b", "/b"), lone_uid_of("a+b", "/b"));
  EXPECT_NE(lone_uid_of("a", "/b/c"), lone_uid_of("a/b", "/c"));
  EXPECT_NE(lone_uid_of(common + "1", "/b"), lone_uid_of(common + "2", "/b"));
}

TEST(IdentifyLone, TakesNoPodFromOurOwnWork) {
  for (const char* path : {"/system.slice/x", kOwnPod, "//kubepods/burstable/podearlier/c1",
                           "kubepods/burstable/podearlier/c1", "/kubepods//podearlier/c1"}) {
    const Identity identity = Told{.placed_at = path}.identity();
    EXPECT_EQ(identity.placed, std::nullopt) << path;
    EXPECT_EQ(identity.sandbox_id, "") << path;
    EXPECT_EQ(identity.source, IdentitySource::kLone) << path;
    EXPECT_EQ(identity.uid, lone_uid_of("c1", "/b")) << path;
  }
}

TEST(Identify, TakesTheUsualRootForAKubeletsWherePodqosHasMovedAside) {
  const auto identity = Told{.placed_at = kOwnPod}.identify("c1", "/podqos/kubepods");
  ASSERT_TRUE(identity);
  EXPECT_EQ(identity->uid, "earlier");
  ASSERT_TRUE(identity->placed);
  EXPECT_EQ(identity->placed->pod_path, "/kubepods/burstable/podearlier");
}

TEST(IsManaged, FollowsTheScopeUnlessItIsOffOrTheContainerOptsOut) {
  struct Concern {
    const char* name;
    bool pods;
    bool annotated;
    bool all;
    void (*tell)(Told& told) = [](Told&) {};
    std::optional<std::string> placed_at = std::nullopt;
  };
  const auto kNothing = [](Told&) {};
  for (const auto& row : std::vector<Concern>{
           {"AnOrdinaryContainer", false, false, true},
           {"APlainCgroup", false, false, true, kNothing, "/system.slice/docker-1.scope"},
           {"TheKubepodsRootItself", false, false, true, kNothing, "/kubepods"},
           {"AWayOutOfAPod", false, false, true, kNothing, "/kubepods/pod1/../../system"},
           {"APodCgroup", true, false, true, kNothing, "/kubepods/pod1/c1"},
           {"ASystemdPodCgroup", true, false, true, kNothing,
            "/kubepods.slice/kubepods-pod1.slice/cri-containerd-c1.scope"},
           {"APodUid", true, true, true, [](Told& told) { told.podqos.pod_uid = "u"; }},
           {"AContainerName", true, true, true, [](Told& told) { told.podqos.container = "c"; }},
           {"AClass", true, true, true,
            [](Told& told) { told.podqos.qos_class = QosClass::kBestEffort; }},
           {"ASpec", true, true, true,
            [](Told& told) { told.podqos.pod = std::make_shared<const Pod>(); }},
           {"PodLevelResources", true, true, true,
            [](Told& told) { told.podqos.pod_level = Resources{}; }},
           {"ContainerResources", true, true, true,
            [](Told& told) { told.podqos.containers["c"] = {}; }},
           {"APodCgroupWithDoubledSlashes", true, false, true, kNothing, "//kubepods//pod1/c1"},
           {"ARelativePodCgroup", false, false, true, kNothing, "kubepods/pod1/c1"},
           {"AnEnginesUid", true, false, true, [](Told& told) { told.engine.pod_uid = "u"; }},
           {"ASandbox", true, false, true, [](Told& told) { told.engine.sandbox_id = "s"; }},
           {"APodNameAlone", false, false, true, [](Told& told) { told.engine.pod_name = "web"; }},
       }) {
    SCOPED_TRACE(row.name);
    Told told{.placed_at = row.placed_at};
    row.tell(told);
    for (const auto& [scope, want] :
         {std::pair{Scope::kPods, row.pods}, std::pair{Scope::kAnnotated, row.annotated},
          std::pair{Scope::kAll, row.all}}) {
      told.settings.scope = scope;
      EXPECT_EQ(told.is_managed(), want);
      Told off = told;
      off.settings.enabled = false;
      EXPECT_FALSE(off.is_managed());
      Told opted_out = told;
      opted_out.podqos.ignore = true;
      EXPECT_FALSE(opted_out.is_managed());
    }
  }
}

/// Under a CRI engine annotations are those of the pod's author.
TEST(IsManaged, NoAuthorOptsOutWhoIsNotTrusted) {
  Told told;
  told.podqos.ignore = true;
  told.engine.cri = true;
  told.engine.pod_uid = "42";
  EXPECT_FALSE(told.is_managed());
  told.settings.trust_annotations = TrustAnnotations::kNone;
  EXPECT_TRUE(told.is_managed());
  told.engine.cri = false;
  EXPECT_FALSE(told.is_managed());
}

}  // namespace
}  // namespace podqos::core
