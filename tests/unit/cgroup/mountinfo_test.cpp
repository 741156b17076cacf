#include <sys/sysmacros.h>

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/cgroup/discovery.h"

namespace podqos::cgroup {
namespace {

/// One line for each hierarchy: "1 cpu cpuacct at /sys/fs/cgroup/cpu,cpuacct".
std::string found_in(std::string_view text) {
  std::string found;
  for (const Hierarchy& hierarchy : parse_mountinfo(text)) {
    found += hierarchy.version == core::CgroupVersion::kV1 ? "1 " : "2 ";
    for (const std::string& controller : hierarchy.controllers)
      found += cat(controller, " ");
    found += cat("at ", hierarchy.mount_point, "\n");
  }
  return found;
}

constexpr std::string_view kSystem =
    "22 27 0:20 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw\n"
    "27 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,discard,errors=remount-ro\n"
    "31 22 0:26 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:9 - tmpfs tmpfs "
    "ro,size=4096k,mode=755\n";

TEST(ParseMountinfo, FindsTheHierarchiesOfAMachine) {
  EXPECT_EQ(found_in("27 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
                     "30 27 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - "
                     "cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"),
            "2 at /sys/fs/cgroup\n");
  EXPECT_EQ(
      found_in(cat(kSystem,
                   "32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
                   "33 31 0:30 / /sys/fs/cgroup/cpuacct rw,relatime - cgroup cgroup rw,cpuacct\n"
                   "34 31 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n")),
      "1 cpu at /sys/fs/cgroup/cpu\n"
      "1 cpuacct at /sys/fs/cgroup/cpuacct\n"
      "1 memory at /sys/fs/cgroup/memory\n");
  // Co-mounted, hybrid.
  EXPECT_EQ(
      found_in(cat(kSystem,
                   "32 31 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:10 - cgroup2 cgroup2 "
                   "rw,nsdelegate\n"
                   "33 31 0:28 / /sys/fs/cgroup/systemd rw,nosuid shared:11 - cgroup cgroup "
                   "rw,xattr,release_agent=/lib/systemd/systemd-cgroups-agent,name=systemd\n"
                   "37 31 0:32 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:15 - cgroup cgroup "
                   "rw,cpu,cpuacct\n"
                   "38 31 0:33 / /sys/fs/cgroup/net_cls,net_prio rw - cgroup cgroup "
                   "rw,net_cls,net_prio\n")),
      "2 at /sys/fs/cgroup/unified\n"
      "1 xattr release_agent=/lib/systemd/systemd-cgroups-agent name=systemd at "
      "/sys/fs/cgroup/systemd\n"
      "1 cpu cpuacct at /sys/fs/cgroup/cpu,cpuacct\n"
      "1 net_cls net_prio at /sys/fs/cgroup/net_cls,net_prio\n");
  // Elsewhere than usual; mounted twice; parts of hierarchies, which are skipped.
  EXPECT_EQ(found_in("27 1 254:1 / / rw - ext4 /dev/vda1 rw\n"
                     "40 27 0:29 / /cgroups/m rw - cgroup none rw,memory\n"),
            "1 memory at /cgroups/m\n");
  EXPECT_EQ(found_in(cat(kSystem,
                         "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                         "90 27 0:29 / /mnt/cpu rw - cgroup cgroup rw,cpu\n")),
            "1 cpu at /sys/fs/cgroup/cpu\n1 cpu at /mnt/cpu\n");
  EXPECT_EQ(found_in(cat(kSystem,
                         "32 31 0:29 /docker/0123 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n"
                         "33 31 0:30 /../.. /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n")),
            "");
}

TEST(ParseMountinfo, ReadsEachFieldAsTheKernelWritesIt) {
  EXPECT_EQ(found_in(""), "");
  // Escapes are decoded; a backslash that begins none stays.
  EXPECT_EQ(found_in("40 1 0:29 / /mnt/a\\040b\\011c\\134d rw - cgroup none rw,cpu\n"),
            "1 cpu at /mnt/a b\tc\\d\n");
  EXPECT_EQ(found_in("40 1 0:29 / /mnt/a\\9b\\04 rw - cgroup none rw,cpu\n"),
            "1 cpu at /mnt/a\\9b\\04\n");
  // No optional field, and many; no newline at the end.
  EXPECT_EQ(found_in("40 1 0:29 / /a rw - cgroup none rw,cpu\n"
                     "41 1 0:30 / /b rw shared:1 master:2 propagate_from:3 unbindable - cgroup "
                     "none rw,memory"),
            "1 cpu at /a\n1 memory at /b\n");
  // Whole words only.
  EXPECT_EQ(found_in("40 1 0:29 / /a rw - cgroup none rw,cpux,xcpu,cpuset_v2_mode,cpuset\n"
                     "41 1 0:30 / /b rw - cgroup2x none rw,memory\n"),
            "1 cpux xcpu cpuset_v2_mode cpuset at /a\n");
  // Controllers of later kernels.
  EXPECT_EQ(found_in("40 1 0:29 / /a rw - cgroup none rw,misc\n"
                     "41 1 0:30 / /b rw - cgroup none rw,dmem\n"
                     "42 1 0:31 / /c rw - cgroup none rw,frob\n"),
            "1 misc at /a\n1 dmem at /b\n1 frob at /c\n");
  // Malformed lines.
  EXPECT_EQ(found_in("\n- - -\n40\n40 1\n40 1 0:29 / relative rw - cgroup none rw,cpu\n"
                     "40 1 0:29 / /a rw\n40 1 0:29 / /a rw -\n"
                     "41 1 0:30 / /ok rw - cgroup none rw,pids\n"),
            "1 pids at /ok\n");
}

TEST(ParseMountinfo, KnowsTheDeviceOfTheFileSystem) {
  const auto device_in = [](std::string_view field) {
    const auto found = parse_mountinfo(cat("40 1 ", field, " / /a rw - cgroup none rw,cpu\n"));
    return found.size() == 1 ? found.front().device : ~dev_t{0};
  };
  EXPECT_EQ(device_in("0:29"), makedev(0, 29));
  EXPECT_EQ(device_in("259:1048575"), makedev(259, 1'048'575));
  for (const std::string_view none : {"0", "x:29", "0:x", ":", "0:29:1"})
    EXPECT_EQ(device_in(none), 0U) << none;
}

}  // namespace
}  // namespace podqos::cgroup
