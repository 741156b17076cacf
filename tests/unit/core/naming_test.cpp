#include "common/core/cgroups/naming.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"

namespace podqos::core {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(FormatSystemd, RefusesWhatWouldLeadElsewhere) {
  for (const auto* bad : {"a/b", "/", "a_b", "_", ".", "..", ""}) {
    for (const auto& names : {std::vector<std::string>{"kubepods", bad}, {bad, "kubepods"}}) {
      const auto path = format_systemd(names);
      ASSERT_FALSE(path) << bad;
      EXPECT_EQ(path.error().code, ErrorCode::kInvalidArgument);
    }
  }
}

TEST(FormatSystemd, ExpandsEveryParent) {
  EXPECT_EQ(format_systemd({"kubepods", "burstable", "pod1-2"}),
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice");
}

TEST(ExpandSlice, RefusesWhatSystemdWould) {
  EXPECT_EQ(expand_slice("-.slice"), "/");
  for (const auto* bad : {"", "a", ".slice", "a.scope", "/a.slice", "a/b.slice", "a--b.slice",
                          "-a.slice", "a-.slice"}) {
    const auto path = expand_slice(bad);
    ASSERT_FALSE(path) << bad;
    EXPECT_EQ(path.error().to_string(), std::string{"invalid slice name: "} + bad);
  }
}

/// Every field as text, so that a failure can be read.
std::string describe(const std::optional<PodCgroup>& pod) {
  if (!pod) return "none";
  return cat(format_qos_class(pod->qos_class), " uid=", pod->uid, " path=", pod->pod_path);
}

TEST(FindPodCgroup, FindsThePod) {
  struct FoundCase {
    std::string name;
    std::string below;  ///< of the pod
    PodCgroup pod;
  };
  for (const auto& [name, below, pod] : std::vector<FoundCase>{
           {"Guaranteed", "", {QosClass::kGuaranteed, "1", "/kubepods/pod1"}},
           {"BelowAnotherRoot",
            "/ctr",
            {QosClass::kBurstable, "1", "/podqos/kubepods/burstable/pod1"}},
           {"TrailingSlash", "/a/b/", {QosClass::kBestEffort, "1", "/kubepods/besteffort/pod1"}},
           {"Systemd",
            "/cri-containerd-a.scope",
            {QosClass::kBurstable, "1-2",
             "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice"}},
           {"SystemdGuaranteed",
            "",
            {QosClass::kGuaranteed, "1", "/kubepods.slice/kubepods-pod1.slice"}},
           {"SystemdBelowAnotherRoot",
            "",
            {QosClass::kBestEffort, "1",
             "/podqos.slice/podqos-kubepods.slice/podqos-kubepods-besteffort.slice/"
             "podqos-kubepods-besteffort-pod1.slice"}},
           {"OutermostPodOfNestedKubelets",
            "/ctr/kubepods/besteffort/pod2/x",
            {QosClass::kBurstable, "1", "/kubepods/burstable/pod1"}},
           {"UidThatContainsPod", "", {QosClass::kGuaranteed, "mypod", "/kubepods/podmypod"}},
           {"UidNamedLikeATier",
            "",
            {QosClass::kGuaranteed, "burstable", "/kubepods/podburstable"}},
           {"KubepodsInsideOneThatHoldsNoPod",
            "",
            {QosClass::kGuaranteed, "1", "/kubepods/x/kubepods/pod1"}},
       }) {
    SCOPED_TRACE(name);
    EXPECT_EQ(describe(find_pod_cgroup(cat(pod.pod_path, below))), describe(pod));
  }
}

TEST(FindPodCgroup, RefusesWhatIsNoPod) {
  for (const auto* path : {
           "",
           "/",
           "/kubepods",
           "/kubepods/burstable",
           "kubepods/besteffort/pod1/a/b/",  // relative to what its runtime says
           "/kubepods/other",
           "/kubepods/pod",                   // no UID
           "/kubepods/poda_b",                // no UID of ours holds '_'
           "/kubepods/pod1/../../elsewhere",  // need not lie below pod1
           "/kubepods/./pod1",
           "/kubepods/burstable/besteffort/pod1",  // two tiers
           "/kubepods/Burstable/pod1",
           "/other/burstable/pod1",  // parents are checked
           "/system.slice/podman.service",
           "/mykubepods/pod1",
           "/kubepods2/pod1",
           "/mykubepods.slice/mykubepods-pod1.slice",
           "/kubepods.slice/pod1",  // a cgroupfs child below a slice
           "/kubepods.slice/kubepods-burstable.slice/kubepods-pod1.slice",
           "/kubepods.slice/kubepods-besteffort.slice/kubepods-burstable-pod1.slice",
           "/kubepods.slice/kubepods-pod1-2.slice",  // '-' is not escaped
           "/kubepods.slice/kubepods-pod1.scope",
           "/kubepods/kubepods-burstable.slice/kubepods-burstable-pod1.slice",
       }) {
    EXPECT_EQ(describe(find_pod_cgroup(path)), "none") << path;
  }
}

TEST(FindPodCgroup, FindsEachPathThatPodPathMakes) {
  // With doubled slashes too.
  EXPECT_EQ(describe(find_pod_cgroup("/kubepods//pod1//ctr")),
            "Guaranteed uid=1 path=/kubepods/pod1");
  const auto path = [](Driver driver) {
    return pod_path(root_path("/my-root", driver), QosClass::kBurstable, "a-b.C");
  };
  EXPECT_EQ(describe(find_pod_cgroup(path(Driver::kCgroupfs))),
            "Burstable uid=a-b.C path=/my-root/kubepods/burstable/poda-b.C");
  EXPECT_EQ(describe(find_pod_cgroup(path(Driver::kSystemd))),
            "Burstable uid=a-b.C path=/my_root.slice/my_root-kubepods.slice/"
            "my_root-kubepods-burstable.slice/my_root-kubepods-burstable-poda_b.C.slice");
}

TEST(CheckPodUid, TakesWhatFitsIntoAName) {
  for (const std::string& uid :
       {std::string{"1"}, std::string{"5f7a3c1e-9b2d-4e8f-a6c0-1d2e3f4a5b6c"}, std::string{"a.b"},
        std::string{"-"}, std::string(128, 'x')}) {
    EXPECT_TRUE(check_pod_uid(uid)) << uid;
  }
}

TEST(CheckPodUid, RefusesTheRest) {
  for (const std::string& uid :
       {std::string{}, std::string{"."}, std::string{".."}, std::string{"a/b"}, std::string{"../x"},
        std::string{"a_b"}, std::string{"a\nb"}, std::string{"a\0b", 3}, std::string{"a b"},
        std::string{"ä"}, std::string(129, 'x'), std::string(300, 'x')}) {
    const auto status = check_pod_uid(uid);
    ASSERT_FALSE(status) << uid;
    EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(CheckPodUid, SaysWhatItExpects) {
  EXPECT_EQ(check_pod_uid("a\nb").error().to_string(),
            "pod UID \"a\\x0ab\": expected 1 to 128 letters, digits, '-' and '.', not only dots");
}

TEST(CheckCgroupComponent, TakesOnePlainDirectoryName) {
  for (const std::string& name : {std::string{"a"}, std::string{"cri-containerd-1.scope"},
                                  std::string{"a b~"}, std::string{"..."}, std::string(255, 'x')}) {
    EXPECT_TRUE(check_cgroup_component(name)) << name;
  }
  for (const std::string& name :
       {std::string{}, std::string{"."}, std::string{".."}, std::string{"a/b"}, std::string{"a\n"},
        std::string{"a\x7f"}, std::string{"ä"}, std::string(256, 'x')}) {
    EXPECT_FALSE(check_cgroup_component(name)) << name;
  }
}

TEST(ParseSystemdCgroupsPath, NeedsExactlyThreeFields) {
  EXPECT_EQ(parse_systemd_cgroups_path("kubepods-pod1.slice:cri-containerd:abc"),
            (SystemdCgroupsPath{
                .slice = "kubepods-pod1.slice", .prefix = "cri-containerd", .name = "abc"}));
  EXPECT_EQ(parse_systemd_cgroups_path("::"), SystemdCgroupsPath{});
  for (const auto* text : {"", "a:b", "a:b:c:d", "/kubepods/pod1", "/a:b:c", "a:b/c:d"}) {
    EXPECT_EQ(parse_systemd_cgroups_path(text), std::nullopt) << text;
  }
}

constexpr auto kFs = Driver::kCgroupfs;
constexpr auto kUnits = Driver::kSystemd;

TEST(DriverOfPath, KnowsBothForms) {
  struct Form {
    const char* name;
    const char* path;
    bool systemd;
  };
  for (const auto& row : std::vector<Form>{
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
       }) {
    SCOPED_TRACE(row.name);
    const bool systemd = detect_driver(row.path) == Driver::kSystemd;
    EXPECT_EQ(systemd, row.systemd);
  }
}

TEST(DetectDriver, ARelativePathTellsNothing) {
  EXPECT_EQ(detect_driver("a.slice:b:c"), kUnits);
  EXPECT_EQ(detect_driver("/a.slice/b.scope/container"), kUnits);
  EXPECT_EQ(detect_driver("/a/b"), kFs);
  for (const char* path : {"", "a/b"})
    EXPECT_EQ(detect_driver(path), std::nullopt) << path;
}

TEST(CheckDriver, TellsWhatToChange) {
  for (const auto driver : {kFs, kUnits})
    EXPECT_TRUE(check_driver(DriverSetting::kAuto, driver));
  EXPECT_TRUE(check_driver(DriverSetting::kCgroupfs, kFs));
  EXPECT_TRUE(check_driver(DriverSetting::kSystemd, kUnits));
  for (const auto& [setting, driver] :
       {std::pair{DriverSetting::kCgroupfs, kUnits}, std::pair{DriverSetting::kSystemd, kFs}}) {
    const Status done = check_driver(setting, driver);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code, ErrorCode::kUnsupported);
    EXPECT_THAT(done.error().message, AllOf(HasSubstr("cgroupDriver"), HasSubstr("SystemdCgroup")));
  }
}

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

TEST(OciCgroupsPath, HasTheFormOfTheDriver) {
  struct Path {
    const char* cgroup;
    const char* id;
    const char* path;
  };
  for (const auto& row : std::vector<Path>{
           {"/kubepods/pod1/c1", "c1", "/kubepods/pod1/c1"},
           {"/k.slice/k-pod1.slice/cri-containerd-c-1.scope", "c-1",
            "k-pod1.slice:cri-containerd:c-1"},
           {"/k.slice/k-pod1.slice/cri-other.scope", "c1", "k-pod1.slice:cri:other"},
           {"/k.slice/k-pod1.slice/-c1.scope", "c1", "k-pod1.slice::c1"},
           {"/k.slice/k-pod1.slice/crun-c1.scope/container", "c1", "k-pod1.slice:crun:c1"},
           {"/kubepods/pod1/container", "container", "/kubepods/pod1/container"},
           {"/k.slice/k-pod1.slice/podqos-c1-0123.scope", "c1", "k-pod1.slice:podqos:c1-0123"},
       })
    EXPECT_EQ(oci_cgroups_path(row.cgroup, row.id), row.path);
}

}  // namespace
}  // namespace podqos::core
