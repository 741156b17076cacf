#include "common/app/place.h"

#include <unistd.h>

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/temporary_directory.h"

namespace podqos::app {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

struct MayConcernCase {
  const char* name;
  const char* config;
  bool want;
};
class MayConcern : public TestWithParam<MayConcernCase> {};

TEST_P(MayConcern, LooksForTheNamesOfPods) {
  for (const auto scope : {core::Scope::kPods, core::Scope::kAnnotated}) {
    core::Settings settings;
    settings.scope = scope;
    EXPECT_EQ(may_concern(GetParam().config, settings), GetParam().want);
  }
}

TEST_P(MayConcern, TakesEveryContainerWhereAllArePods) {
  core::Settings settings;
  settings.scope = core::Scope::kAll;
  EXPECT_TRUE(may_concern(GetParam().config, settings));
}

TEST_P(MayConcern, IsFalseWherePodqosIsSwitchedOff) {
  core::Settings settings;
  settings.scope = core::Scope::kAll;
  settings.enabled = false;
  EXPECT_FALSE(may_concern(GetParam().config, settings));
}

INSTANTIATE_TEST_SUITE_P(
    Table, MayConcern,
    ValuesIn<MayConcernCase>({
        {"AnOrdinaryContainer", R"({"process":{"args":["sh"]},"annotations":{"a/b":"c"}})", false},
        {"Nothing", "", false},
        {"OurAnnotation", R"({"annotations":{"podqos.io/pod-uid":"42"}})", true},
        {"ACriSandbox", R"({"annotations":{"io.kubernetes.cri.sandbox-id":"s"}})", true},
        {"PodmansSandbox", R"({"annotations":{"io.kubernetes.cri-o.SandboxID":"s"}})", true},
        {"APodCgroup", R"({"linux":{"cgroupsPath":"/kubepods/pod1/c"}})", true},
        {"ASystemdPodCgroup", R"({"linux":{"cgroupsPath":"kubepods-pod1.slice:cri:c"}})", true},
    }),
    [](const TestParamInfo<MayConcernCase>& row) { return std::string{row.param.name}; });

/// Settings whose log is a file of the test's own.
core::Settings logging_to(const TemporaryDirectory& directory) {
  core::Settings settings;
  settings.log_sink = directory.path("log");
  settings.log_level = core::LogLevel::kDebug;
  settings.state_dir = directory.path("state");
  return settings;
}

struct Unmanaged {
  const char* name;
  const char* config;
};
class PlaceUnmanaged : public TestWithParam<Unmanaged> {};

TEST_P(PlaceUnmanaged, WritesNothing) {
  const TemporaryDirectory directory;
  const core::Settings settings = logging_to(directory);
  Log log{"test", settings};
  PlacementRequest request;
  request.id = "c1";
  request.bundle = directory.path();
  request.config = GetParam().config;
  request.creator = Pid{::getpid()};
  const auto placed = place(settings, log, request);
  ASSERT_TRUE(placed) << placed.error().message;
  EXPECT_FALSE(*placed);
  EXPECT_FALSE(directory.has("state"));
}

INSTANTIATE_TEST_SUITE_P(
    Table, PlaceUnmanaged,
    ValuesIn<Unmanaged>({
        {"AnOrdinaryContainer", R"({"ociVersion":"1.0.0"})"},
        {"OneThatOptsOut",
         R"({"annotations":{"podqos.io/pod-uid":"42","podqos.io/ignore":"true"}})"},
    }),
    [](const TestParamInfo<Unmanaged>& row) { return std::string{row.param.name}; });

struct Broken {
  const char* name;
  const char* config;
  const char* says;
};
class PlaceBroken : public TestWithParam<Broken> {};

TEST_P(PlaceBroken, IsRefusedBeforeAnythingIsWritten) {
  const TemporaryDirectory directory;
  const core::Settings settings = logging_to(directory);
  Log log{"test", settings};
  PlacementRequest request;
  request.id = "c1";
  request.bundle = directory.path();
  request.config = GetParam().config;
  request.creator = Pid{::getpid()};
  const auto placed = place(settings, log, request);
  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(placed.error().message, HasSubstr(GetParam().says));
  EXPECT_FALSE(directory.has("state"));
}

INSTANTIATE_TEST_SUITE_P(
    Table, PlaceBroken,
    ValuesIn<Broken>({
        {"NoJson", "{", ""},
        {"AList", "[]", ""},
        {"AUidWithASlash", R"({"annotations":{"podqos.io/pod-uid":"a/b"}})", "podqos.io/pod-uid"},
        {"AnUnknownAnnotation", R"({"annotations":{"podqos.io/pod-uuid":"a"}})",
         "podqos.io/pod-uid"},
        {"ABrokenSpec", R"({"annotations":{"podqos.io/pod":"{"}})", "podqos.io/pod"},
    }),
    [](const TestParamInfo<Broken>& row) { return std::string{row.param.name}; });

}  // namespace
}  // namespace podqos::app
