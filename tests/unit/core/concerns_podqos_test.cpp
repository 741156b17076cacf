#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "common/core/identity.h"

namespace podqos::core {
namespace {

using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

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
    return concerns_podqos(row.podqos, row.engine, settings, row.placed_at);
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
    EXPECT_FALSE(
        concerns_podqos(GetParam().podqos, GetParam().engine, settings, GetParam().placed_at));
  }
}

TEST_P(ConcernsPodqos, NeverWhereTheContainerOptsOut) {
  PodqosAnnotations podqos = GetParam().podqos;
  podqos.ignore = true;
  for (const Scope scope : {Scope::kPods, Scope::kAnnotated, Scope::kAll}) {
    Settings settings;
    settings.scope = scope;
    EXPECT_FALSE(concerns_podqos(podqos, GetParam().engine, settings, GetParam().placed_at));
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
  EXPECT_FALSE(concerns_podqos(podqos, engine, settings, std::nullopt));
  settings.trust_annotations = TrustAnnotations::kNone;
  EXPECT_TRUE(concerns_podqos(podqos, engine, settings, std::nullopt));
  engine.cri = false;
  EXPECT_FALSE(concerns_podqos(podqos, engine, settings, std::nullopt));
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
