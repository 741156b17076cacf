#include <fcntl.h>
#include <sys/sysmacros.h>

#include "common/sys/process.h"
#include "tests/unit/cgroup/own_cgroup.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::cgroup {
namespace {

using core::Controller;
using core::EnsureCgroup;
using core::MoveProcess;
using core::OnRefusal;
using core::RemoveCgroup;
using core::SetOomScore;
using core::WriteFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class Execute : public OwnCgroup {
 protected:
  [[nodiscard]] std::string memory_limit_file() {
    return is_v2(Controller::kMemory) ? "memory.max" : "memory.limit_in_bytes";
  }
  [[nodiscard]] WriteFile memory_limit(const std::string& path, std::string value,
                                       OnRefusal on_refusal = OnRefusal::kFail) {
    return {path, Controller::kMemory, memory_limit_file(), std::move(value), "", on_refusal};
  }
  [[nodiscard]] std::string memory_limit_of(const std::string& path) {
    return content(cat(hierarchy_with("memory").mount_point, path, "/", memory_limit_file()));
  }
  [[nodiscard]] WriteFile no_such_file(OnRefusal on_refusal) {
    return {base(), Controller::kMemory, "memory.podqos_test", "1", "", on_refusal};
  }
};

TEST_F(Execute, MakesTheCgroupInEveryHierarchy) {
  const mode_t before = ::umask(022);
  ensure(below("a"));
  ::umask(before);
  reopen();
  ensure(below("a"));  // a second time, which changes nothing
  for (const Hierarchy& hierarchy : hierarchies()) {
    struct stat status{};
    ASSERT_EQ(::stat((hierarchy.mount_point + below("a")).c_str(), &status), 0)
        << hierarchy.mount_point;
    EXPECT_EQ(status.st_mode & 07777U, 0755U) << hierarchy.mount_point;
  }
}

TEST_F(Execute, WorksComponentwise) {
  Result<Cgroupfs> componentwise = Cgroupfs::open({.resolve = sys::Resolve::kComponentwise});
  ASSERT_TRUE(componentwise) << componentwise.error().message;
  const auto report =
      componentwise->execute({EnsureCgroup{below("a")}, memory_limit(below("a"), "10485760")});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(memory_limit_of(below("a")), "10485760");
}

TEST_F(Execute, EnablesControllersOnTheWayDown) {
  const std::optional<Hierarchy> v2 = unified();
  if (!v2) GTEST_SKIP() << "no cgroup v2 hierarchy";
  // Made by another program, with nothing enabled.
  ASSERT_EQ(::mkdir((v2->mount_point + base()).c_str(), 0755), 0);
  ensure(below("a"));
  const auto expect = [&](const std::string& path, std::string_view controller, bool enabled) {
    EXPECT_EQ(has_word(content(v2->mount_point + path + "/cgroup.subtree_control"), controller),
              enabled && std::ranges::count(v2->controllers, controller) > 0)
        << path << " " << controller;
  };
  for (const std::string& path : {base(), below("a")}) {
    for (const char* controller : {"cpu", "memory", "pids", "hugetlb", "cpuset"})
      expect(path, controller, true);
    expect(path, "io", false);
  }
  execute({EnsureCgroup{.path = base(), .also = Controller::kIo}});
  expect(base(), "io", true);
  expect(below("a"), "io", false);
}

TEST_F(Execute, GivesACpusetItsParentsCpus) {
  const Hierarchy cpuset = hierarchy_with("cpuset");
  if (cpuset.mount_point.empty() || cpuset.version == core::CgroupVersion::kV2) {
    GTEST_SKIP() << "no cgroup v1 cpuset";
  }
  // Made by a program that was killed before filling it.
  ASSERT_EQ(::mkdir((cpuset.mount_point + base()).c_str(), 0755), 0);
  ensure(below("a"));
  for (const char* file : {"cpuset.cpus", "cpuset.mems"}) {
    const std::string of_root = content(cat(cpuset.mount_point, "/", file));
    EXPECT_THAT(of_root, ::testing::Not(IsEmpty()));
    EXPECT_EQ(content(cat(cpuset.mount_point, base(), "/", file)), of_root);
    EXPECT_EQ(content(cat(cpuset.mount_point, below("a"), "/", file)), of_root);
  }
}

TEST_F(Execute, StartsAgainWhenAParentWasRemoved) {
  ensure(below("a"));
  ASSERT_TRUE(cgroupfs().exists(below("a")));
  for (const Hierarchy& hierarchy : hierarchies()) {
    ASSERT_EQ(::rmdir((hierarchy.mount_point + below("a")).c_str()), 0) << hierarchy.mount_point;
  }
  ensure(below("a/b"));
  expect_everywhere(below("a/b"));
}

/// mkdir(2) says EAGAIN alone: kernel/cgroup/cgroup.c cgroup_check_hierarchy_limits().
TEST_F(Execute, NamesTheLimitOfCgroupsThatIsReached) {
  const auto v2 = unified();
  if (!v2 || !v2->writable) GTEST_SKIP() << "no cgroup v2 here";
  ensure(below("a"));
  const std::string descendants = cat(v2->mount_point, base(), "/cgroup.max.descendants");
  const std::string depth = cat(v2->mount_point, base(), "/cgroup.max.depth");
  std::ofstream{descendants} << "1";
  EXPECT_THAT(refused({EnsureCgroup{below("b")}}).message, HasSubstr(descendants + " is 1"));
  std::ofstream{descendants} << "max";
  std::ofstream{depth} << "1";
  EXPECT_THAT(refused({EnsureCgroup{below("a/b")}}).message, HasSubstr(depth + " is 1"));
  std::ofstream{depth} << "max";
  ensure(below("a/b"));
}

TEST_F(Execute, NamesTheProcessesOfAnInnerCgroup) {
  const std::optional<Hierarchy> v2 = unified();
  const auto has = [&](const char* name) { return std::ranges::count(v2->controllers, name) > 0; };
  if (!v2 || !(has("memory") || has("hugetlb")))
    GTEST_SKIP() << "no cgroup v2 hierarchy with memory or hugetlb";
  const Pid process = start_process();
  execute({EnsureCgroup{base()}, MoveProcess{base(), process}});
  const Error error = refused({EnsureCgroup{below("a")}});
  // Not kBusy: it does not pass by itself, and a pod without controllers has none of its values.
  EXPECT_EQ(error.code, ErrorCode::kConflict);
  EXPECT_THAT(error.message, StartsWith(cat(v2->mount_point, base(), ": write \"+")));
  EXPECT_THAT(error.message,
              HasSubstr(cat("Device or resource busy (process ", process.value(), " runs in it")));
  EXPECT_THAT(error.message, HasSubstr("move it to a leaf cgroup"));
}

TEST_F(Execute, RefusesImproperPaths) {
  for (const std::string path : {"", "relative", "/..", "/.", "/a/../b", "//a", "/a/"}) {
    EXPECT_EQ(refused({EnsureCgroup{path}}).code, ErrorCode::kInvalidArgument) << path;
  }
}

TEST_F(Execute, WritesWhatHasChangedOnly) {
  ensure(base());
  // The kernel rounds to pages.
  const core::Plan plan = {memory_limit(base(), "10485761")};
  EXPECT_THAT(
      execute(plan).written,
      ElementsAre(cat(base(), "/", memory_limit_file(), ": ",
                      is_v2(Controller::kMemory) ? "max" : "unlimited", " → ~10Mi (10485761)")));
  EXPECT_EQ(memory_limit_of(base()), "10485760");
  EXPECT_THAT(execute(plan).written, IsEmpty());
}

TEST_F(Execute, KnowsHowTheKernelShowsUnlimited) {
  const core::Plan plan = {memory_limit(base(), is_v2(Controller::kMemory) ? "max" : "-1")};
  ensure(base());
  EXPECT_THAT(execute(plan).written, IsEmpty());
  execute({memory_limit(base(), "10485760")});
  EXPECT_EQ(execute(plan).written.size(), 1U);
}

TEST_F(Execute, EndsThePlanAtTheFirstRefusalAndNamesItsRemedy) {
  ensure(base());
  const Error error = refused({no_such_file(OnRefusal::kFail), EnsureCgroup{below("a")}});
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_THAT(error.message,
              StartsWith(cat(base(),
                             ": write \"1\" to memory.podqos_test: No such file or directory "
                             "(the memory controller is not enabled here")));
  EXPECT_FALSE(cgroupfs().exists(below("a")));
}

TEST_F(Execute, CountsWhatThePlanIgnores) {
  ensure(base());
  const Report report = execute({no_such_file(OnRefusal::kIgnore), EnsureCgroup{below("a")}});
  EXPECT_THAT(report.ignored,
              ElementsAre(StartsWith(cat(base(), ": write \"1\" to memory.podqos_test: "))));
  EXPECT_TRUE(cgroupfs().exists(below("a")));
}

TEST_F(Execute, TriesOnceMoreAfterThePlan) {
  const core::Plan plan = {memory_limit(base(), "10485760", OnRefusal::kRetryAfterPlan),
                           EnsureCgroup{base()}};
  EXPECT_EQ(execute(plan).written.size(), 1U);
  EXPECT_EQ(memory_limit_of(base()), "10485760");
  const Error error = refused({no_such_file(OnRefusal::kRetryAfterPlan)});
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
}

TEST_F(Execute, NoticesThatTheCgroupWasRemovedAndMadeAnew) {
  const std::string directory = hierarchy_with("memory").mount_point + base();
  execute({EnsureCgroup{base()}, memory_limit(base(), "10485760")});
  ASSERT_EQ(::rmdir(directory.c_str()), 0);
  EXPECT_EQ(refused({memory_limit(base(), "20971520")}),
            (Error{ErrorCode::kNotFound, cat(base(), ": write \"20971520\" to ",
                                             memory_limit_file(), ": no such cgroup")}));
  ASSERT_EQ(::mkdir(directory.c_str(), 0755), 0);
  execute({memory_limit(base(), "20971520")});
  EXPECT_EQ(memory_limit_of(base()), "20971520");
  EXPECT_TRUE(cgroupfs().memory_usage(base()));
}

TEST_F(Execute, RefusesAFileOutsideTheCgroup) {
  ensure(base());
  for (const std::string file : {"../memory.max", "..", ""}) {
    WriteFile step = no_such_file(OnRefusal::kFail);
    step.file = file;
    EXPECT_EQ(refused({step}).code, ErrorCode::kInvalidArgument) << file;
  }
}

TEST_F(Execute, MovesIntoALeafWherePodqosWrites) {
  const Pid process = start_process();
  const auto before = sys::cgroups_of(process);
  ASSERT_TRUE(before);
  execute({EnsureCgroup{below("pod/leaf")}, MoveProcess{below("pod/leaf"), process}});
  const auto cgroups = sys::cgroups_of(process);
  ASSERT_TRUE(cgroups);
  for (const sys::ProcCgroup& cgroup : *cgroups) {
    const bool stays =
        !cgroup.controllers.empty() && !has_used_controller({.version = core::CgroupVersion::kV1,
                                                             .controllers = cgroup.controllers,
                                                             .mount_point = ""});
    const bool unified = cgroup.controllers.empty();
    if (unified && !is_v2(core::Controller::kMemory)) continue;  // a hybrid host's, without any
    if (stays) {
      EXPECT_THAT(*before, ::testing::Contains(cgroup));
    } else {
      EXPECT_EQ(cgroup.path, below("pod/leaf")) << ::testing::PrintToString(cgroup.controllers);
    }
  }
  EXPECT_EQ(refused({MoveProcess{below("pod/leaf"), Pid{999'999'999}}}),
            (Error{ErrorCode::kNotFound, cat(below("pod/leaf"), ": process 999999999 is gone")}));
}

TEST_F(Execute, RemovesFromEveryHierarchyButNeverTheRoot) {
  ensure(below("a"));
  execute({RemoveCgroup{below("a"), OnRefusal::kFail}});
  expect_everywhere(below("a"), false);
  expect_everywhere(base());
  // What is absent already.
  execute({RemoveCgroup{below("none/at/all"), OnRefusal::kFail}});
  EXPECT_EQ(refused({RemoveCgroup{"/", OnRefusal::kFail}}).code, ErrorCode::kInvalidArgument);
}

TEST_F(Execute, OneInUseStaysEverywhere) {
  const Pid process = start_process();
  execute({EnsureCgroup{base()}, MoveProcess{base(), process}});
  const Error error = refused({RemoveCgroup{base(), OnRefusal::kFail}});
  EXPECT_EQ(error.code, ErrorCode::kBusy);
  EXPECT_THAT(error.message, StartsWith(cat(base(), ": rmdir ")));
  expect_everywhere(base());
  EXPECT_EQ(execute({RemoveCgroup{base(), OnRefusal::kIgnore}}).ignored.size(), 1U);
}

/// A cgroup in which a container has nested others, in the hierarchy with memory.
class ExecuteRemoveNested : public Execute {
 protected:
  void nest_beside(int count) {
    for (int i = 0; i < count; ++i)
      ASSERT_EQ(::mkdir(cat(place_, "/", i).c_str(), 0755), 0);
  }
  /// Beyond PATH_MAX, too.
  void nest_deeply(int count) {
    int at = ::open(place_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(::mkdirat(at, "x", 0755), 0);
      const int next = ::openat(at, "x", O_PATH | O_DIRECTORY | O_CLOEXEC);
      ::close(at);
      at = next;
    }
    ::close(at);
  }
  void SetUp() override {
    Execute::SetUp();
    if (IsSkipped()) return;
    ensure(base());
    place_ = hierarchy_with("memory").mount_point + base();
  }
  Report remove() { return execute({RemoveCgroup{.path = base(), .nested = true}}); }

  std::string place_;
};

TEST_F(ExecuteRemoveNested, FromTheBottomWhenAsked) {
  nest_deeply(40);
  nest_beside(100);
  execute({RemoveCgroup{base()}});
  EXPECT_EQ(cgroupfs().children(base()).value().size(), 101U);
  EXPECT_FALSE(remove().partly);
  EXPECT_FALSE(cgroupfs().exists(base()));
}

TEST_F(ExecuteRemoveNested, AsManyAsOnePlanMay) {
  nest_beside(1'200);
  for (const std::size_t left : {688U, 176U}) {  // of 1,200, 512 a plan
    EXPECT_TRUE(remove().partly);
    EXPECT_EQ(cgroupfs().children(base()).value().size(), left);
  }
  EXPECT_FALSE(remove().partly);
  EXPECT_FALSE(cgroupfs().exists(base()));
}

TEST_F(ExecuteRemoveNested, EachPlanGoesFurther) {
  nest_deeply(1'500);
  for (int plans = 0; cgroupfs().exists(base()); ++plans) {
    ASSERT_LT(plans, 20);
    remove();
  }
}

TEST_F(ExecuteRemoveNested, WhatLivesStays) {
  nest_deeply(3);
  nest_beside(3);
  const Pid process = start_process();
  std::ofstream{place_ + "/x/x/cgroup.procs"} << process.value();
  EXPECT_TRUE(remove().partly);
  EXPECT_TRUE(is_directory(place_ + "/x/x"));
  EXPECT_FALSE(is_directory(place_ + "/x/x/x"));
  EXPECT_THAT(cgroupfs().children(base()).value(), ElementsAre("x"));
  const Report second = remove();
  EXPECT_FALSE(second.partly);
  EXPECT_THAT(second.ignored, ElementsAre(StartsWith(cat(base(), ": rmdir "))));
}

TEST_F(Execute, SetsTheScoreOfThatProcess) {
  const Pid process = start_process();
  const auto start = sys::start_time_of(process);
  ASSERT_TRUE(start && start->has_value());
  const Report report = execute({SetOomScore{process, **start, 987}});
  EXPECT_THAT(report.written, ElementsAre(cat("/proc/", process.value(), "/oom_score_adj = 987")));
  EXPECT_EQ(content(cat("/proc/", process.value(), "/oom_score_adj")), "987");
}

TEST_F(Execute, LacksAControllerOnlyWhereThePlanDemandsIt) {
  const Hierarchy memory = hierarchy_with("memory");
  if (memory.version == core::CgroupVersion::kV2)
    GTEST_SKIP() << "takes a cgroup v1 memory hierarchy";
  const TemporaryDirectory place;
  place.write("mountinfo", cat("40 31 0:", minor(memory.device), " / ", memory.mount_point,
                               " rw - cgroup cgroup rw,memory\n"));
  Result<Cgroupfs> partial =
      Cgroupfs::open({.mountinfo = place.path("mountinfo"), .unified = place.path("none")});
  ASSERT_TRUE(partial) << partial.error().message;
  EXPECT_EQ(partial->layout().cpu, std::nullopt);
  WriteFile shares{base(), Controller::kCpu, "cpu.shares", "2", "", OnRefusal::kFail};
  const auto failed = partial->execute({shares});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error(),
            (Error{ErrorCode::kUnsupported, cat(base(),
                                                ": write \"2\" to cpu.shares: this machine has no "
                                                "cpu controller")}));
  shares.on_refusal = OnRefusal::kIgnore;
  const auto ignored = partial->execute({shares});
  ASSERT_TRUE(ignored);
  EXPECT_EQ(ignored->ignored.size(), 1U);
}

}  // namespace
}  // namespace podqos::cgroup
