#include "common/cgroup/cgroupfs.h"

#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "tests/unit/cgroup/own_cgroup.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::cgroup {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

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
    EXPECT_EQ(found->size(), hierarchies().size());
  });
}

class OpenElsewhere : public ::testing::Test {
 protected:
  OpenElsewhere() {
    options_.unified = place_.path("none");
    options_.mountinfo = place_.path("mountinfo");
  }
  TemporaryDirectory place_;
  CgroupfsOptions options_;
};

TEST_F(OpenElsewhere, SaysWhereItLookedForControllers) {
  place_.write("mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n");
  const auto opened = Cgroupfs::open(options_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(opened.error().message,
              HasSubstr("neither the cpu nor the memory controller is mounted"));
  EXPECT_THAT(opened.error().message, HasSubstr(place_.path("mountinfo")));
}

TEST_F(OpenElsewhere, ADirectoryThatIsNoCgroupFileSystemIsLeftOut) {
  place_.write("mountinfo",
               cat("32 22 0:29 / ", place_.path(), " rw - cgroup cgroup rw,cpu,memory\n"));
  const auto opened = Cgroupfs::open(options_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kUnsupported);
}

TEST_F(OpenElsewhere, AnUnreadableMountinfoIsNamed) {
  const auto opened = Cgroupfs::open(options_);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().to_string(),
            cat("open ", place_.path("mountinfo"), ": No such file or directory"));
}

/// With the real hierarchies of a host of cgroup v1 or hybrid, and a mountinfo of the test's own.
class RememberedMounts : public OpenElsewhere {
 protected:
  void SetUp() override {
    if (std::filesystem::exists("/sys/fs/cgroup/cgroup.controllers") || ::geteuid() != 0)
      GTEST_SKIP()
          << "needs root on a host of cgroup v1 or hybrid: elsewhere mountinfo is not read";
    std::ifstream live{"/proc/self/mountinfo"};
    text_ = {std::istreambuf_iterator<char>{live}, {}};
    place_.write("mountinfo", text_);
    std::filesystem::create_directory(place_.path("state"));
    auto memory = sys::Directory::open(place_.path("state"));
    ASSERT_TRUE(memory);
    memory_ = std::move(*memory);
    options_.mountinfo_cache = &*memory_;
    ASSERT_TRUE(find_hierarchies(options_));
    const auto mounted = parse_mountinfo(text_);
    std::ifstream own{"/proc/self/cgroup"};
    own_ = {std::istreambuf_iterator<char>{own}, {}};
    const bool all_mounted = std::ranges::count(own_, '\n') == std::ssize(mounted);
    const bool all_whole = std::ranges::all_of(mounted, [](const Hierarchy& hierarchy) {
      struct stat root{};
      return ::stat(hierarchy.mount_point.c_str(), &root) == 0 && root.st_ino == 1;
    });
    if (!all_mounted || !all_whole)
      GTEST_SKIP()
          << "not all hierarchies are mounted here as a whole: mountinfo is read each time";
    ASSERT_TRUE(place_.has("state/mountinfo"));
  }
  [[nodiscard]] std::string kept() { return place_.read("state/mountinfo"); }
  void forget(const char* name) { std::filesystem::remove(place_.path(name)); }

  std::string text_;
  std::string own_;
  std::optional<sys::Directory> memory_;
};

TEST_F(RememberedMounts, AreFoundWithoutMountinfo) {
  const auto before = usable_hierarchies(options_);
  forget("mountinfo");
  EXPECT_TRUE(Cgroupfs::open(options_));
  EXPECT_EQ(usable_hierarchies(options_), before);
}

TEST_F(RememberedMounts, AreTheLinesAboutHierarchies) {
  const std::string lines = lines_about(parse_mountinfo(text_), text_);
  EXPECT_THAT(kept(), EndsWith(cat("\n\n", lines)));
}

/// One has come, gone, or been made anew since.
TEST_F(RememberedMounts, AreLookedForAnewWhereTheHierarchiesAreOthers) {
  const std::string good = kept();
  options_.own_cgroups = place_.path("cgroup");
  forget("mountinfo");
  place_.write("cgroup", own_);
  EXPECT_TRUE(Cgroupfs::open(options_));
  const std::size_t second = own_.find('\n') + 1;
  for (const std::string& other :
       {cat("99:name=new:/\n", own_), own_.substr(second), cat("9", own_), std::string{}}) {
    place_.write("cgroup", other);
    EXPECT_FALSE(Cgroupfs::open(options_)) << other;
  }
  // Where a process is says nothing of what there is.
  place_.write("cgroup", cat(own_.substr(0, second - 1), "/elsewhere\n", own_.substr(second)));
  EXPECT_TRUE(Cgroupfs::open(options_));
  EXPECT_EQ(kept(), good);
}

TEST_F(RememberedMounts, AreNotKeptWhereOneIsNotMounted) {
  options_.own_cgroups = place_.path("cgroup");
  forget("state/mountinfo");
  // Whatever its controller: the runtime makes a directory in each hierarchy.
  for (const char* hierarchy : {"99:name=nowhere:/\n", "99:frob:/\n"}) {
    place_.write("cgroup", cat(hierarchy, own_));
    ASSERT_TRUE(find_hierarchies(options_));
    EXPECT_FALSE(place_.has("state/mountinfo")) << hierarchy;
  }
}

TEST_F(RememberedMounts, AreLookedForAnewWhereOneIsAnother) {
  const std::string good = kept();
  // The first relevant one gets a device number that no file system has.
  std::string wrong;
  for (const Hierarchy& hierarchy : parse_mountinfo(good)) {
    const std::string number = cat("0:", ::gnu_dev_minor(hierarchy.device));
    if (!has_used_controller(hierarchy) || !wrong.empty()) continue;
    wrong = good;
    wrong.replace(wrong.find(cat(" ", number, " ")) + 1, number.size(), "0:1048575");
  }
  ASSERT_FALSE(wrong.empty());
  place_.write("state/mountinfo", wrong);
  ASSERT_TRUE(Cgroupfs::open(options_));
  EXPECT_EQ(kept(), good);

  place_.write("state/mountinfo", wrong);
  forget("mountinfo");
  EXPECT_FALSE(Cgroupfs::open(options_));
}

TEST_F(RememberedMounts, AreLookedForAnewWhereOneIsMissing) {
  const std::string good = kept();
  for (std::size_t begin = 0; begin < good.size(); begin = good.find('\n', begin) + 1) {
    const std::string line = good.substr(begin, good.find('\n', begin) + 1 - begin);
    const auto about = parse_mountinfo(line);
    if (about.size() != 1 || !has_used_controller(about.front())) continue;
    place_.write("state/mountinfo", std::string{good}.erase(begin, line.size()));
    ASSERT_TRUE(Cgroupfs::open(options_));
    EXPECT_EQ(kept(), good) << line;
  }
}

TEST_F(RememberedMounts, AreLookedForAnewWhereTheFileIsDamaged) {
  const std::string good = kept();
  for (const std::string& damaged : {std::string{}, std::string{"\0\1\2", 3},
                                     good.substr(0, good.size() / 2), std::string(70'000, 'x')}) {
    place_.write("state/mountinfo", damaged);
    ASSERT_TRUE(Cgroupfs::open(options_));
    EXPECT_EQ(kept(), good);
  }
}

TEST_F(RememberedMounts, AreNotKeptOnAHostOfV2) {
  const auto mounted = parse_mountinfo(text_);
  const auto unified = std::ranges::find(mounted, core::CgroupVersion::kV2, &Hierarchy::version);
  if (unified == mounted.end()) GTEST_SKIP() << "no cgroup2 file system is mounted here";
  forget("state/mountinfo");
  options_.unified = unified->mount_point;
  options_.access = Access::kRead;
  EXPECT_TRUE(find_hierarchies(options_));
  EXPECT_FALSE(place_.has("state/mountinfo"));
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
