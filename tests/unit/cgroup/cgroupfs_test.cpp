#include "common/cgroup/cgroupfs.h"

#include <sys/mount.h>
#include <sys/wait.h>

#include "tests/unit/cgroup/own_cgroup.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::cgroup {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

constexpr int kCannotMount = 2;

class OpenCgroupfs : public OwnCgroup {
 protected:
  /// The mount that carries memory: all of v2, one hierarchy of v1.
  [[nodiscard]] std::string memory_mount() { return hierarchy_with("memory").mount_point; }

  template <class Body>
  void in_private_mounts(Body body) {
    const int status = run_in_child([&] {
      const bool is_private = ::unshare(CLONE_NEWNS) == 0 &&
                              ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
      if (!is_private) ::_exit(kCannotMount);
      body();
    });
    if (WEXITSTATUS(status) == kCannotMount) GTEST_SKIP() << "mounting is not allowed here";
    EXPECT_EQ(status, 0);
  }
};

TEST_F(OpenCgroupfs, FindsTheControllersOfThisMachine) {
  const core::CgroupLayout& layout = cgroupfs().layout();
  EXPECT_TRUE(layout.cpu.has_value() || layout.memory.has_value());
  EXPECT_EQ(layout.memory.has_value(), !memory_mount().empty());
  const bool has_blkio = !hierarchy_with("blkio").mount_point.empty();
  EXPECT_EQ(layout.io == core::CgroupVersion::kV1, has_blkio);
  for (const Hierarchy& hierarchy : hierarchies()) {
    EXPECT_TRUE(is_directory(hierarchy.mount_point)) << hierarchy.mount_point;
    EXPECT_TRUE(hierarchy.writable) << hierarchy.mount_point;
  }
  if (!layout.hugetlb) {
    EXPECT_TRUE(layout.hugepage_labels.empty());
  }
}

TEST_F(OpenCgroupfs, KeepsHierarchiesUntilMountsChange) {
  if (cgroupfs().layout().memory != core::CgroupVersion::kV1) GTEST_SKIP() << "only v1's are kept";
  const std::string mount_point = memory_mount();
  in_private_mounts([&] {
    const auto first = find_hierarchies({.keep = true});
    ASSERT_TRUE(first);
    EXPECT_EQ(find_hierarchies({.keep = true}), first);
    EXPECT_NE(find_hierarchies({}), first);
    if (::mount("none", mount_point.c_str(), "tmpfs", 0, nullptr) != 0) ::_exit(kCannotMount);
    const auto without = Cgroupfs::open({.keep = true});
    ASSERT_TRUE(without);
    EXPECT_EQ(without->layout_without_hugepages().memory, std::nullopt);
    ASSERT_EQ(::umount2(mount_point.c_str(), MNT_DETACH), 0);
    auto again = Cgroupfs::open({.keep = true});
    ASSERT_TRUE(again);
    EXPECT_EQ(again->layout_without_hugepages().memory, core::CgroupVersion::kV1);
    EXPECT_TRUE(again->exists("/"));
  });
}

TEST_F(OpenCgroupfs, MountPointsAreTheUnifiedOneAndThoseElsewhere) {
  const std::string mount_point = memory_mount();
  if (cgroupfs().layout().memory != core::CgroupVersion::kV1) GTEST_SKIP() << "has one mount";
  EXPECT_THAT(mount_points({.unified = "/sys/fs/cgroup"}), ElementsAre("/sys/fs/cgroup"));
  EXPECT_THAT(mount_points({.unified = "/nowhere"}), Contains(mount_point));
  in_private_mounts([&] {
    if (::mount("none", mount_point.c_str(), "tmpfs", 0, nullptr) != 0) ::_exit(kCannotMount);
    EXPECT_THAT(mount_points({.unified = "/nowhere"}), Not(Contains(mount_point)));
  });
}

TEST_F(OpenCgroupfs, MountPointsKeepsTheHierarchies) {
  if (cgroupfs().layout().memory != core::CgroupVersion::kV1) GTEST_SKIP() << "only v1's are kept";
  in_private_mounts([] {
    EXPECT_FALSE(find_hierarchies({.mountinfo = "/nowhere", .keep = true}));
    static_cast<void>(mount_points({.keep = true}));
    EXPECT_TRUE(find_hierarchies({.mountinfo = "/nowhere", .keep = true}));
  });
}

TEST_F(OpenCgroupfs, ReadOnlyIsAPermissionError) {
  const std::string mount_point = memory_mount();
  in_private_mounts([&] {
    const bool done =
        ::mount(mount_point.c_str(), mount_point.c_str(), nullptr, MS_BIND, nullptr) == 0 &&
        ::mount(nullptr, mount_point.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) ==
            0;
    if (!done) ::_exit(kCannotMount);
    const auto opened = Cgroupfs::open();
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error(),
              (Error{ErrorCode::kPermission, cat(mount_point, ": mounted read-only")}));
  });
}

TEST_F(OpenCgroupfs, ACoveredHierarchyIsLeftOut) {
  const std::string mount_point = memory_mount();
  const bool is_only_one = hierarchies().size() == 1;
  in_private_mounts([&] {
    if (::mount("podqos-test", mount_point.c_str(), "tmpfs", 0, "size=64k") != 0)
      ::_exit(kCannotMount);
    auto opened = Cgroupfs::open();
    EXPECT_EQ(opened.has_value(), !is_only_one);
    if (opened) {
      EXPECT_EQ(opened->layout().memory, std::nullopt);
    } else {
      EXPECT_EQ(opened.error().code, ErrorCode::kUnsupported);
    }
  });
}

TEST_F(OpenCgroupfs, OneUnderAnotherIsLeftOut) {
  const std::string mount_point = memory_mount();
  const std::string cpu = hierarchy_with("cpu").mount_point;
  if (mount_point == cpu) GTEST_SKIP() << "takes hierarchies of cgroup v1";
  in_private_mounts([&] {
    if (::mount(cpu.c_str(), mount_point.c_str(), nullptr, MS_BIND, nullptr) != 0)
      ::_exit(kCannotMount);
    auto opened = Cgroupfs::open();
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->layout().memory, std::nullopt);
    EXPECT_EQ(opened->layout().cpu, core::CgroupVersion::kV1);
  });
}

TEST_F(OpenCgroupfs, OneMountedTwiceIsTakenOnce) {
  const std::string mount_point = memory_mount();
  in_private_mounts([&] {
    if (::mount(mount_point.c_str(), mount_point.c_str(), nullptr, MS_BIND, nullptr) != 0)
      ::_exit(kCannotMount);
    const auto found = find_hierarchies({});
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ((*found)->size(), hierarchies().size());
  });
}

class OpenElsewhere : public ::testing::Test {
 protected:
  [[nodiscard]] Error refused() const {
    const auto opened =
        Cgroupfs::open({.mountinfo = place_.path("mountinfo"), .unified = place_.path("none")});
    EXPECT_FALSE(opened);
    return opened ? Error{} : opened.error();
  }
  TemporaryDirectory place_;
};

TEST_F(OpenElsewhere, SaysWhereItLookedForControllers) {
  EXPECT_EQ(refused().message,
            cat("open ", place_.path("mountinfo"), ": No such file or directory"));
  place_.write("mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
  EXPECT_EQ(refused(),
            (Error{ErrorCode::kUnsupported,
                   cat("neither the cpu nor the memory controller is mounted, as cgroup v1 or v2 "
                       "(looked at ",
                       place_.path("none"), " and ", place_.path("mountinfo"), ")")}));
}

TEST_F(OpenElsewhere, WhatIsMountedOverACgroupFileSystemIsLeftOut) {
  for (const std::string& point : {place_.path(), place_.path("mountinfo")}) {
    place_.write("mountinfo", cat("32 22 0:29 / ", point, " rw - cgroup cgroup rw,cpu,memory\n"));
    EXPECT_EQ(refused().code, ErrorCode::kUnsupported) << point;
  }
}

TEST(HugepageLabels, AreSortedBySizeWithoutOtherNames) {
  const TemporaryDirectory pools;
  EXPECT_THAT(hugepage_labels(pools.path("none")), ElementsAre());
  for (const char* name :
       {"hugepages-1048576kB", "hugepages-64kB", "hugepages-2048kB", "hugepages-", "hugepages-xkB",
        "hugepages-0kB", "hugepages-2048MB", "other"})
    std::filesystem::create_directory(pools.path(name));
  EXPECT_THAT(hugepage_labels(pools.path()), ElementsAre("64KB", "2MB", "1GB"));
}

}  // namespace
}  // namespace podqos::cgroup
