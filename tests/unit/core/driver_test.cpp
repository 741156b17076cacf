#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "common/core/naming.h"

namespace podqos::core {
namespace {

using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

constexpr auto kFs = Driver::kCgroupfs;
constexpr auto kUnits = Driver::kSystemd;

struct Form {
  const char* name;
  const char* path;
  bool systemd;
};
class DriverOfPath : public TestWithParam<Form> {};

TEST_P(DriverOfPath, KnowsBothForms) {
  const bool systemd = detect_driver({.path = GetParam().path}) == Driver::kSystemd;
  EXPECT_EQ(systemd, GetParam().systemd);
}

INSTANTIATE_TEST_SUITE_P(Table, DriverOfPath,
                         ValuesIn<Form>({
                             {"ThreeFields", "machine.slice:libpod:c1", true},
                             {"ThreeEmptyFields", "::", true},
                             {"AScope", "/user.slice/docker-c1.scope", true},
                             {"AScopeInTheRoot", "/init.scope", true},
                             {"AScopeOutsideOfSlices", "/user/docker-c1.scope", false},
                             {"AScopeInAMisplacedSlice", "/x/user.slice/c1.scope", false},
                             {"CrunsInnerCgroup", "/m.slice/crun-c1.scope/container", true},
                             // A cgroupfs runtime that was started in somebody's session.
                             {"BelowAScope", "/user.slice/session-1.scope/c1", false},
                             {"BelowASlice", "/system.slice/c1", false},
                             {"APlainPath", "/kubepods/burstable/pod42/c1", false},
                             {"ABareSuffix", "/.scope", false},
                             {"Nothing", "", false},
                             {"TheRoot", "/", false},
                             {"ASliceLikeName", "/system.slices/c1", false},
                             {"ColonsInAPath", "/a:b:c", false},
                         }),
                         [](const TestParamInfo<Form>& row) {
                           return std::string{row.param.name};
                         });

struct Signs {
  const char* name;
  DriverSigns signs;
  std::optional<Driver> driver;
};
class DetectDriver : public TestWithParam<Signs> {};

TEST_P(DetectDriver, BelievesTheStrongestSign) {
  EXPECT_EQ(detect_driver(GetParam().signs), GetParam().driver);
}

INSTANTIATE_TEST_SUITE_P(
    Table, DetectDriver,
    ValuesIn<Signs>({
        {"Nothing", {}, std::nullopt},
        {"FlagsAlone", {.flags = kUnits}, kUnits},
        {"FlagsBeforeThePath", {.flags = kFs, .path = "a.slice:b:c"}, kFs},
        {"FlagsBeforeThePathTheOtherWay", {.flags = kUnits, .path = "/a/b"}, kUnits},
        {"ThePathInThreeParts", {.path = "a.slice:b:c", .real = "/a/b"}, kUnits},
        {"AnAbsolutePath", {.path = "/a/b", .real = "/a.slice/b.scope"}, kFs},
        {"ARelativePath", {.path = "a/b", .real = "/a.slice/b.scope"}, kUnits},
        {"ARelativePathAlone", {.path = "a/b"}, std::nullopt},
        {"OnlyTheRealOne", {.real = "/a.slice/b.scope/container"}, kUnits},
        {"OnlyARealPlainOne", {.real = "/a/b"}, kFs},
    }),
    [](const TestParamInfo<Signs>& row) { return std::string{row.param.name}; });

struct Setting {
  DriverSetting setting;
  Driver driver;
  bool fits;
};
class CheckDriver : public TestWithParam<Setting> {};

TEST_P(CheckDriver, TellsWhatToChange) {
  const Status done = check_driver(GetParam().setting, GetParam().driver);
  ASSERT_EQ(done.has_value(), GetParam().fits);
  if (done) return;
  EXPECT_EQ(done.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(done.error().message.find("cgroupDriver"), std::string::npos);
  EXPECT_NE(done.error().message.find("SystemdCgroup"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Table, CheckDriver,
                         ValuesIn<Setting>({{DriverSetting::kAuto, kFs, true},
                                            {DriverSetting::kAuto, kUnits, true},
                                            {DriverSetting::kCgroupfs, kFs, true},
                                            {DriverSetting::kCgroupfs, kUnits, false},
                                            {DriverSetting::kSystemd, kFs, false},
                                            {DriverSetting::kSystemd, kUnits, true}}));

TEST(DriverOf, TellsUnitsByTheirSuffix) {
  EXPECT_EQ(driver_of("/kubepods.slice"), kUnits);
  EXPECT_EQ(driver_of("/a.slice/b-c.scope"), kUnits);
  EXPECT_EQ(driver_of("/a.slice/a-b.slice/a-b-c.slice"), kUnits);
  // A pod's uid may end like a unit; the unit of that name is somebody else's.
  EXPECT_EQ(driver_of("/kubepods/burstable/podman-77.scope"), kFs);
  EXPECT_EQ(driver_of("/kubepods/burstable/podvictim.slice"), kFs);
  EXPECT_EQ(driver_of("/a.slice/b.slice"), kFs);
  EXPECT_EQ(driver_of("/kubepods/burstable"), kFs);
  EXPECT_EQ(driver_of("/kubepods.slice/plain"), kFs);
}

TEST(ScopePath, ExpandsTheSlice) {
  EXPECT_EQ(scope_path({.slice = "kubepods-pod1.slice", .prefix = "crio", .name = "c1"}),
            "/kubepods.slice/kubepods-pod1.slice/crio-c1.scope");
  EXPECT_EQ(scope_path({.slice = "-.slice", .prefix = "", .name = "c1"}), "/-c1.scope");
  EXPECT_EQ(scope_path({.slice = "a.slice", .prefix = "p", .name = "a-b.slice"}),
            "/a.slice/a-b.slice");
  EXPECT_EQ(scope_path({.slice = "nothing", .prefix = "p", .name = "c1"}), std::nullopt);
}

struct Path {
  const char* cgroup;
  const char* id;
  const char* path;
};
class OciCgroupsPath : public TestWithParam<Path> {};

TEST_P(OciCgroupsPath, HasTheFormOfTheDriver) {
  EXPECT_EQ(oci_cgroups_path(GetParam().cgroup, GetParam().id), GetParam().path);
}

INSTANTIATE_TEST_SUITE_P(
    Table, OciCgroupsPath,
    ValuesIn<Path>({{"/kubepods/pod1/c1", "c1", "/kubepods/pod1/c1"},
                    {"/k.slice/k-pod1.slice/cri-containerd-c-1.scope", "c-1",
                     "k-pod1.slice:cri-containerd:c-1"},
                    {"/k.slice/k-pod1.slice/cri-other.scope", "c1", "k-pod1.slice:cri:other"},
                    {"/k.slice/k-pod1.slice/-c1.scope", "c1", "k-pod1.slice::c1"},
                    {"/k.slice/k-pod1.slice/crun-c1.scope/container", "c1", "k-pod1.slice:crun:c1"},
                    {"/kubepods/pod1/container", "container", "/kubepods/pod1/container"},
                    {"/k.slice/k-pod1.slice/podqos-c1-0123.scope", "c1",
                     "k-pod1.slice:podqos:c1-0123"}}));

}  // namespace
}  // namespace podqos::core
