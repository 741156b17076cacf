#include "common/cgroup/mountinfo.h"

#include <sys/sysmacros.h>

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/text.h"

namespace podqos::cgroup {
namespace {

using enum core::CgroupVersion;

constexpr std::string_view kSystem =
    "22 27 0:20 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw\n"
    "27 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,discard,errors=remount-ro\n"
    "31 22 0:26 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:9 - tmpfs tmpfs "
    "ro,size=4096k,mode=755\n";

struct MountinfoCase {
  const char* name;
  std::string text;
  std::vector<Hierarchy> want;
};

class ParseMountinfo : public ::testing::TestWithParam<MountinfoCase> {};

TEST_P(ParseMountinfo, FindsTheHierarchies) {
  const std::vector<Hierarchy> found = parse_mountinfo(GetParam().text);
  ASSERT_EQ(found.size(), GetParam().want.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].version, GetParam().want[i].version) << i;
    EXPECT_EQ(found[i].controllers, GetParam().want[i].controllers) << i;
    EXPECT_EQ(found[i].mount_point, GetParam().want[i].mount_point) << i;
  }
}

TEST(ParseMountinfoDevice, IsTheFileSystems) {
  const auto device_in = [](std::string_view field) {
    const auto found = parse_mountinfo(cat("40 1 ", field, " / /a rw - cgroup none rw,cpu\n"));
    return found.size() == 1 ? found.front().device : ~dev_t{0};
  };
  EXPECT_EQ(device_in("0:29"), makedev(0, 29));
  EXPECT_EQ(device_in("259:1048575"), makedev(259, 1'048'575));
  for (const std::string_view none : {"0", "x:29", "0:x", ":", "0:29:1"})
    EXPECT_EQ(device_in(none), 0U) << none;
}

INSTANTIATE_TEST_SUITE_P(
    Machines, ParseMountinfo,
    ::testing::Values(
        MountinfoCase{"PureV2",
                      "27 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
                      "30 27 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - "
                      "cgroup2 cgroup2 "
                      "rw,nsdelegate,memory_recursiveprot\n",
                      {{kV2, {}, "/sys/fs/cgroup"}}},
        MountinfoCase{
            "SeparateV1",
            cat(kSystem,
                "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
                "33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n"
                "34 31 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"),
            {{kV1, {"cpu"}, "/sys/fs/cgroup/cpu"},
             {kV1, {"cpuacct"}, "/sys/fs/cgroup/cpuacct"},
             {kV1, {"memory"}, "/sys/fs/cgroup/memory"}}},
        MountinfoCase{
            "CoMountedHybrid",
            cat(kSystem,
                "32 31 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:10 - cgroup2 cgroup2 "
                "rw,nsdelegate\n"
                "33 31 0:28 / /sys/fs/cgroup/systemd rw,nosuid shared:11 - cgroup cgroup "
                "rw,xattr,release_agent=/lib/systemd/systemd-cgroups-agent,name=systemd\n"
                "37 31 0:32 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:15 - cgroup cgroup "
                "rw,cpu,cpuacct\n"
                "38 31 0:33 / /sys/fs/cgroup/net_cls,net_prio rw - cgroup cgroup "
                "rw,net_cls,net_prio\n"),
            {{kV2, {}, "/sys/fs/cgroup/unified"},
             {kV1,
              {"xattr", "release_agent=/lib/systemd/systemd-cgroups-agent", "name=systemd"},
              "/sys/fs/cgroup/systemd"},
             {kV1, {"cpu", "cpuacct"}, "/sys/fs/cgroup/cpu,cpuacct"},
             {kV1, {"net_cls", "net_prio"}, "/sys/fs/cgroup/net_cls,net_prio"}}},
        MountinfoCase{"ElsewhereThanUsual",
                      "27 1 254:1 / / rw - ext4 /dev/vda1 rw\n"
                      "40 27 0:29 / /cgroups/m rw - cgroup none rw,memory\n",
                      {{kV1, {"memory"}, "/cgroups/m"}}},
        MountinfoCase{"MountedTwice",
                      cat(kSystem,
                          "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                          "90 27 0:29 / /mnt/cpu rw - cgroup cgroup rw,cpu\n"),
                      {{kV1, {"cpu"}, "/sys/fs/cgroup/cpu"}, {kV1, {"cpu"}, "/mnt/cpu"}}},
        MountinfoCase{"PartOfAHierarchyIsSkipped",
                      cat(kSystem,
                          "32 31 0:29 /docker/0123 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n"
                          "33 31 0:30 /../.. /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"),
                      {}}),
    [](const auto& machine) { return machine.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Text, ParseMountinfo,
    ::testing::Values(
        MountinfoCase{"Empty", "", {}},
        MountinfoCase{"EscapesAreDecoded",
                      "40 1 0:29 / /mnt/a\\040b\\011c\\134d rw - cgroup none rw,cpu\n",
                      {{kV1, {"cpu"}, "/mnt/a b\tc\\d"}}},
        MountinfoCase{"ABackslashThatBeginsNoEscapeStays",
                      "40 1 0:29 / /mnt/a\\9b\\04 rw - cgroup none rw,cpu\n",
                      {{kV1, {"cpu"}, "/mnt/a\\9b\\04"}}},
        MountinfoCase{"NoOptionalFieldAndMany",
                      "40 1 0:29 / /a rw - cgroup none rw,cpu\n"
                      "41 1 0:30 / /b rw shared:1 master:2 propagate_from:3 unbindable - cgroup "
                      "none rw,memory\n",
                      {{kV1, {"cpu"}, "/a"}, {kV1, {"memory"}, "/b"}}},
        MountinfoCase{"WholeWordsOnly",
                      "40 1 0:29 / /a rw - cgroup none rw,cpux,xcpu,cpuset_v2_mode,cpuset\n"
                      "41 1 0:30 / /b rw - cgroup2x none rw,memory\n",
                      {{kV1, {"cpux", "xcpu", "cpuset_v2_mode", "cpuset"}, "/a"}}},
        MountinfoCase{
            "NoNewlineAtTheEnd", "40 1 0:29 / /a rw - cgroup none rw,cpu", {{kV1, {"cpu"}, "/a"}}},
        MountinfoCase{"ControllersOfLaterKernels",
                      "40 1 0:29 / /a rw - cgroup none rw,misc\n"
                      "41 1 0:30 / /b rw - cgroup none rw,dmem\n"
                      "42 1 0:31 / /c rw - cgroup none rw,frob\n",
                      {{kV1, {"misc"}, "/a"}, {kV1, {"dmem"}, "/b"}, {kV1, {"frob"}, "/c"}}},
        MountinfoCase{"MalformedLines",
                      "\n- - -\n40\n40 1\n40 1 0:29 / "
                      "relative rw - cgroup "
                      "none rw,cpu\n40 1 0:29 / /a rw\n40 1 0:29 / /a rw -\n41 1 0:30 / /ok rw - "
                      "cgroup none rw,pids\n",
                      {{kV1, {"pids"}, "/ok"}}}),
    [](const auto& machine) { return machine.param.name; });

}  // namespace
}  // namespace podqos::cgroup
