#include "common/sys/process.h"
#include "tests/unit/cgroup/own_cgroup.h"

namespace podqos::cgroup {
namespace {

using core::Controller;
using core::EnsureCgroup;
using core::MoveProcess;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Observe : public OwnCgroup {};

TEST_F(Observe, ACgroupExistsAsSoonAsOneHierarchyHasIt) {
  EXPECT_FALSE(cgroupfs().exists(base()));
  const std::string last = cgroupfs().hierarchies().back().mount_point + base();
  ASSERT_EQ(::mkdir(last.c_str(), 0755), 0);
  EXPECT_TRUE(cgroupfs().exists(base()));
  EXPECT_TRUE(cgroupfs().exists("/"));
}

TEST_F(Observe, AnImproperPathDoesNotExist) {
  for (const char* path : {"", "..", "/..", "/."})
    EXPECT_FALSE(cgroupfs().exists(path)) << path;
}

TEST_F(Observe, ChildrenAreTheUnionOfAllHierarchies) {
  static_cast<void>(execute({EnsureCgroup{below("b")}, EnsureCgroup{below("c")}}));
  const std::string last = cgroupfs().hierarchies().back().mount_point + below("a");
  ASSERT_EQ(::mkdir(last.c_str(), 0755), 0);
  const auto children = cgroupfs().children(base());
  ASSERT_TRUE(children) << children.error().to_string();
  EXPECT_THAT(*children, ElementsAre("a", "b", "c"));
}

TEST_F(Observe, AnAbsentCgroupHasNoChildrenAndNoProcesses) {
  EXPECT_THAT(cgroupfs().children(base()).value(), IsEmpty());
  EXPECT_THAT(cgroupfs().processes(base()).value(), IsEmpty());
  EXPECT_EQ(cgroupfs().populated(base()), false);
}

TEST_F(Observe, ReadsAValueWithoutItsNewline) {
  static_cast<void>(execute({EnsureCgroup{base()}}));
  const bool v2 = is_v2(Controller::kCpu);
  EXPECT_EQ(cgroupfs().read(base(), Controller::kCpu, v2 ? "cpu.weight" : "cpu.shares"),
            v2 ? "100" : "1024");
}

TEST_F(Observe, AMissingFileIsNotFound) {
  static_cast<void>(execute({EnsureCgroup{base()}}));
  for (const std::string& path : {base(), below("none")}) {
    const auto text = cgroupfs().read(path, Controller::kCpu, "cpu.podqos_test");
    ASSERT_FALSE(text) << path;
    EXPECT_EQ(text.error().code, ErrorCode::kNotFound) << path;
  }
}

TEST_F(Observe, ReadsTheCgroupThatWasMadeAnew) {
  static_cast<void>(execute({EnsureCgroup{base()}}));
  ASSERT_TRUE(cgroupfs().memory_usage(base()));
  const std::string directory = hierarchy_with("memory").mount_point + base();
  ASSERT_EQ(::rmdir(directory.c_str()), 0);
  ASSERT_EQ(::mkdir(directory.c_str(), 0755), 0);
  EXPECT_TRUE(cgroupfs().memory_usage(base()));
}

TEST_F(Observe, SeesProcessesFarBelow) {
  const Pid first = start_process();
  const Pid second = start_process();
  static_cast<void>(execute({EnsureCgroup{below("a/b")}, MoveProcess{below("a/b"), first},
                             EnsureCgroup{below("c")}, MoveProcess{below("c"), second}}));
  EXPECT_EQ(cgroupfs().populated(base()), true);
  EXPECT_THAT(cgroupfs().processes(base()).value(),
              ElementsAre(std::min(first, second), std::max(first, second)));
  EXPECT_THAT(cgroupfs().processes(below("a")).value(), ElementsAre(first));
  EXPECT_EQ(cgroupfs().cgroup_of(first), below("a/b"));
  end_processes();
  EXPECT_EQ(cgroupfs().populated(base()), false);
  EXPECT_THAT(cgroupfs().processes(base()).value(), IsEmpty());
}

TEST_F(Observe, AProcessInOneHierarchyCounts) {
  static_cast<void>(execute({EnsureCgroup{base()}}));
  const Pid process = start_process();
  const std::string procs = cgroupfs().hierarchies().back().mount_point + base() + "/leaf";
  ASSERT_EQ(::mkdir(procs.c_str(), 0755), 0);
  std::ofstream{procs + "/cgroup.procs"} << process.value();
  EXPECT_EQ(cgroupfs().populated(base()), true);
  EXPECT_THAT(cgroupfs().processes(base()).value(), ElementsAre(process));
}

TEST_F(Observe, NestingHasABound) {
  const Hierarchy first = cgroupfs().hierarchies().front();
  if (first.version == core::CgroupVersion::kV2) GTEST_SKIP() << "cgroup v2 counts by itself";
  std::string path = first.mount_point + base();
  for (int depth = 0; depth <= 17; ++depth) {
    ASSERT_EQ(::mkdir(path.c_str(), 0755), 0);
    path += "/x";
  }
  // A container may nest as it likes: where nobody looks, a process may live.
  EXPECT_EQ(cgroupfs().populated(base()), true);
  const auto processes = cgroupfs().processes(base());
  ASSERT_FALSE(processes);
  EXPECT_EQ(processes.error().code, ErrorCode::kTooLarge);
}

TEST_F(Observe, AProcessThatIsGoneHasNoCgroup) {
  const auto path = cgroupfs().cgroup_of(Pid{999'999'999});
  ASSERT_FALSE(path);
  EXPECT_EQ(path.error().code, ErrorCode::kNotFound);
}

TEST_F(Observe, ANewCgroupHasNoSharedMemory) {
  static_cast<void>(execute({EnsureCgroup{base()}}));
  EXPECT_EQ(cgroupfs().shmem_charge(base()), Bytes{0});
  const auto usage = cgroupfs().memory_usage(base());
  ASSERT_TRUE(usage) << usage.error().to_string();
  EXPECT_GE(usage->value(), 0);
}

TEST_F(Observe, AttributesStayWithTheCgroup) {
  static_cast<void>(execute({EnsureCgroup{base()}}));
  EXPECT_EQ(cgroupfs().attribute(base(), "trusted.podqos").value(), std::nullopt);
  const std::string record(5'000, 'r');  // longer than the first read
  const Status set = cgroupfs().set_attribute(base(), "trusted.podqos", record);
  ASSERT_TRUE(set) << set.error().to_string();
  cgroupfs().forget();
  EXPECT_EQ(cgroupfs().attribute(base(), "trusted.podqos").value(), record);
}

TEST_F(Observe, AnAttributeOfAnAbsentCgroupIsNotFound) {
  const auto value = cgroupfs().attribute(base(), "trusted.podqos");
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace podqos::cgroup
