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

struct Glance {
  const char* name;
  const char* config;
  bool want;
};
class MayConcern : public TestWithParam<Glance> {};

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
    ValuesIn<Glance>({
        {"AnOrdinaryContainer", R"({"process":{"args":["sh"]},"annotations":{"a/b":"c"}})", false},
        {"Nothing", "", false},
        {"OurAnnotation", R"({"annotations":{"podqos.io/pod-uid":"42"}})", true},
        {"ACriSandbox", R"({"annotations":{"io.kubernetes.cri.sandbox-id":"s"}})", true},
        {"PodmansSandbox", R"({"annotations":{"io.kubernetes.cri-o.SandboxID":"s"}})", true},
        {"APodCgroup", R"({"linux":{"cgroupsPath":"/kubepods/pod1/c"}})", true},
        {"ASystemdPodCgroup", R"({"linux":{"cgroupsPath":"kubepods-pod1.slice:cri:c"}})", true},
    }),
    [](const TestParamInfo<Glance>& row) { return std::string{row.param.name}; });

struct Form {
  const char* name;
  const char* path;
  bool systemd;
};
class IsSystemdPath : public TestWithParam<Form> {};

TEST_P(IsSystemdPath, KnowsBothForms) {
  EXPECT_EQ(is_systemd_path(GetParam().path), GetParam().systemd);
}

INSTANTIATE_TEST_SUITE_P(Table, IsSystemdPath,
                         ValuesIn<Form>({
                             {"ThreeFields", "machine.slice:libpod:c1", true},
                             {"ThreeEmptyFields", "::", true},
                             {"AScope", "/user/docker-c1.scope", true},
                             {"ASlice", "/system.slice/c1", true},
                             {"APlainPath", "/kubepods/burstable/pod42/c1", false},
                             {"Nothing", "", false},
                             {"TheRoot", "/", false},
                             {"ASliceLikeName", "/system.slices/c1", false},
                             {"ColonsInAPath", "/a:b:c", false},
                         }),
                         [](const TestParamInfo<Form>& row) {
                           return std::string{row.param.name};
                         });

/// Settings whose log is a file of the test's own.
core::Settings logging_to(const TemporaryDirectory& directory) {
  core::Settings settings;
  settings.log_sink = directory.path("log");
  settings.log_level = core::LogLevel::kDebug;
  settings.state_dir = directory.path("state");
  return settings;
}

class CheckDriver : public ::testing::Test {
 protected:
  [[nodiscard]] std::string logged() const {
    return directory_.has("log") ? directory_.read("log") : std::string{};
  }
  TemporaryDirectory directory_;
};

TEST_F(CheckDriver, ManagesACgroupfsRuntimesContainers) {
  const core::Settings settings = logging_to(directory_);
  Log log{"test", settings};
  EXPECT_EQ(check_driver(settings, log, "c1", "/a/c1", false), true);
  EXPECT_EQ(check_driver(settings, log, "c1", std::nullopt, false), true);
  EXPECT_THAT(logged(), IsEmpty());
}

TEST_F(CheckDriver, LeavesASystemdRuntimesContainersAloneWithAWarning) {
  const core::Settings settings = logging_to(directory_);
  Log log{"test", settings};
  EXPECT_EQ(check_driver(settings, log, "c1", "a.slice:b:c", false), false);
  EXPECT_THAT(logged(), AllOf(HasSubstr("warning"), HasSubstr("container c1"),
                              HasSubstr("a.slice:b:c"), HasSubstr("left alone")));
}

TEST_F(CheckDriver, BelievesTheRuntimesFlag) {
  const core::Settings settings = logging_to(directory_);
  Log log{"test", settings};
  EXPECT_EQ(check_driver(settings, log, "c1", std::nullopt, true), false);
  EXPECT_EQ(check_driver(settings, log, "c1", "/a/c1", true), false);
}

TEST_F(CheckDriver, RefusesSystemdWhereCgroupfsIsDemanded) {
  core::Settings settings = logging_to(directory_);
  settings.cgroup_driver = core::DriverSetting::kCgroupfs;
  Log log{"test", settings};
  const auto managed = check_driver(settings, log, "c\n1", "a.slice:b:c", false);
  ASSERT_FALSE(managed);
  EXPECT_EQ(managed.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(managed.error().message, AllOf(HasSubstr("c\\x0a1"), HasSubstr("cgroupDriver")));
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
        {"ASystemdRuntimes",
         R"({"annotations":{"podqos.io/pod-uid":"42"},"linux":{"cgroupsPath":"a.slice:b:c"}})"},
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
