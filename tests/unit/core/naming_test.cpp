#include "common/core/naming.h"

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"

namespace podqos::core {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FormatSystemd, RefusesWhatWouldLeadElsewhere) {
  for (const auto* bad : {"a/b", "/", "a_b", "_", ".", ".."}) {
    const auto path = format_systemd({"kubepods", bad});
    ASSERT_FALSE(path) << bad;
    EXPECT_EQ(path.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(FormatSystemd, ExpandsEveryParent) {
  EXPECT_EQ(format_systemd({}), "/");
  EXPECT_EQ(format_systemd({""}), "/");
  EXPECT_EQ(format_systemd({"", ""}), "/");  // "-.slice"
  EXPECT_EQ(format_systemd({"kubepods", "burstable", "pod1-2"}),
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice");
}

TEST(FormatSystemd, RefusesEmptyComponents) {
  EXPECT_FALSE(format_systemd({"a", "", "b"}));
  EXPECT_FALSE(format_systemd({"a", ""}));
  EXPECT_FALSE(format_systemd({"", "a"}));
}

TEST(ParseCgroupfs, TrimsOneSlashAndResolvesNothing) {
  EXPECT_THAT(parse_cgroupfs(""), IsEmpty());
  EXPECT_THAT(parse_cgroupfs("/"), IsEmpty());
  EXPECT_THAT(parse_cgroupfs("a/b"), ElementsAre("a", "b"));
  EXPECT_THAT(parse_cgroupfs("//a/"), ElementsAre("", "a", ""));
}

TEST(ExpandSlice, KnowsTheRoot) {
  EXPECT_EQ(expand_slice("-.slice"), "/");
}

TEST(ExpandSlice, RefusesWhatSystemdWould) {
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
  return cat(format_qos_class(pod->qos_class), " uid=", pod->uid, " path=", pod->pod_path,
             " below=", pod->below, pod->systemd ? " systemd" : " cgroupfs");
}

struct FoundCase {
  std::string name;
  std::string path;
  PodCgroup want;
};

class FindPodCgroup : public ::testing::TestWithParam<FoundCase> {};

TEST_P(FindPodCgroup, FindsThePod) {
  EXPECT_EQ(describe(find_pod_cgroup(GetParam().path)), describe(GetParam().want));
}
INSTANTIATE_TEST_SUITE_P(
    Table, FindPodCgroup,
    ::testing::ValuesIn<FoundCase>({
        {"Guaranteed", "/kubepods/pod1", {QosClass::kGuaranteed, "1", "/kubepods/pod1", "", false}},
        {"BelowAnotherRoot",
         "/podqos/kubepods/burstable/pod1/ctr",
         {QosClass::kBurstable, "1", "/podqos/kubepods/burstable/pod1", "ctr", false}},
        {"RelativePathAndTrailingSlash",
         "kubepods/besteffort/pod1/a/b/",
         {QosClass::kBestEffort, "1", "kubepods/besteffort/pod1", "a/b", false}},
        {"DoubledSlashes",
         "/kubepods//pod1//ctr",
         {QosClass::kGuaranteed, "1", "/kubepods//pod1", "ctr", false}},
        {"Systemd",
         "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/"
         "cri-containerd-a.scope",
         {QosClass::kBurstable, "1-2",
          "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice",
          "cri-containerd-a.scope", true}},
        {"SystemdGuaranteed",
         "/kubepods.slice/kubepods-pod1.slice",
         {QosClass::kGuaranteed, "1", "/kubepods.slice/kubepods-pod1.slice", "", true}},
        {"SystemdBelowAnotherRoot",
         "/podqos.slice/podqos-kubepods.slice/podqos-kubepods-besteffort.slice/"
         "podqos-kubepods-besteffort-pod1.slice",
         {QosClass::kBestEffort, "1",
          "/podqos.slice/podqos-kubepods.slice/podqos-kubepods-besteffort.slice/"
          "podqos-kubepods-besteffort-pod1.slice",
          "", true}},
        {"OutermostPodOfNestedKubelets",
         "/kubepods/burstable/pod1/ctr/kubepods/besteffort/pod2/x",
         {QosClass::kBurstable, "1", "/kubepods/burstable/pod1", "ctr/kubepods/besteffort/pod2/x",
          false}},
        {"UidThatContainsPod",
         "/kubepods/podmypod",
         {QosClass::kGuaranteed, "mypod", "/kubepods/podmypod", "", false}},
        {"UidNamedLikeATier",
         "/kubepods/podburstable",
         {QosClass::kGuaranteed, "burstable", "/kubepods/podburstable", "", false}},
        {"KubepodsInsideOneThatHoldsNoPod",
         "/kubepods/x/kubepods/pod1",
         {QosClass::kGuaranteed, "1", "/kubepods/x/kubepods/pod1", "", false}},
    }),
    [](const auto& c) { return c.param.name; });

TEST(FindPodCgroup, RefusesWhatIsNoPod) {
  for (const auto* path : {
           "",
           "/",
           "/kubepods",
           "/kubepods/burstable",
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
  const auto path = [](Driver driver) {
    return pod_path(root_path("/my-root", driver), QosClass::kBurstable, "a-b.C");
  };
  EXPECT_EQ(describe(find_pod_cgroup(path(Driver::kCgroupfs))),
            "Burstable uid=a-b.C path=/my-root/kubepods/burstable/poda-b.C below= cgroupfs");
  EXPECT_EQ(describe(find_pod_cgroup(path(Driver::kSystemd))),
            "Burstable uid=a-b.C path=/my_root.slice/my_root-kubepods.slice/"
            "my_root-kubepods-burstable.slice/my_root-kubepods-burstable-poda_b.C.slice "
            "below= systemd");
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

TEST(CheckPodUid, NamesTheOffendingCharacter) {
  EXPECT_EQ(check_pod_uid("a\nb").error().to_string(),
            "pod UID \"a\\x0ab\" contains the invalid character \"\\x0a\"");
  EXPECT_EQ(check_pod_uid(std::string(300, 'x')).error().to_string(),
            "pod UID has 300 characters, at most 128 are allowed");
}

TEST(CheckCgroupComponent, TakesOnePlainDirectoryName) {
  for (const std::string& name : {std::string{"a"}, std::string{"cri-containerd-1.scope"},
                                  std::string{"a b"}, std::string{"..."}, std::string(255, 'x')}) {
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

}  // namespace
}  // namespace podqos::core
