#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>

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
  const std::string last = hierarchies().back().mount_point + base();
  ASSERT_EQ(::mkdir(last.c_str(), 0755), 0);
  EXPECT_TRUE(cgroupfs().exists(base()));
  EXPECT_TRUE(cgroupfs().exists("/"));
}

TEST_F(Observe, WhatCannotBeOpenedIsNotAbsent) {
  expect_in_child([this] {
    const rlimit no_more_files{};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &no_more_files), 0);
    EXPECT_FALSE(cgroupfs().children(base()));
    EXPECT_FALSE(cgroupfs().populated(base()));
    EXPECT_FALSE(find_hierarchies({.unified = "/nowhere"}));
  });
  EXPECT_FALSE(cgroupfs().exists(base()));
  EXPECT_EQ(cgroupfs().populated(base()), false);
}

TEST_F(Observe, ChildrenAreTheUnionOfAllHierarchies) {
  execute({EnsureCgroup{below("b")}, EnsureCgroup{below("c")}});
  const std::string last = hierarchies().back().mount_point + below("a");
  ASSERT_EQ(::mkdir(last.c_str(), 0755), 0);
  const auto children = cgroupfs().children(base());
  ASSERT_TRUE(children) << children.error().message;
  EXPECT_THAT(*children, ElementsAre("a", "b", "c"));
}

TEST_F(Observe, AnAbsentCgroupHasNothing) {
  EXPECT_THAT(cgroupfs().children(base()).value(), IsEmpty());
  EXPECT_THAT(cgroupfs().processes(base()).value(), IsEmpty());
  EXPECT_EQ(cgroupfs().populated(base()), false);
  EXPECT_EQ(cgroupfs().attribute(base(), "trusted.podqos").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(cgroupfs().cgroup_of(Pid{999'999'999}).error().code, ErrorCode::kNotFound);
  for (const char* improper : {"", "..", "/..", "/."})
    EXPECT_FALSE(cgroupfs().exists(improper)) << improper;
}

TEST_F(Observe, ReadsAValueWithoutItsNewline) {
  ensure(base());
  const bool v2 = is_v2(Controller::kCpu);
  EXPECT_EQ(cgroupfs().read(base(), Controller::kCpu, v2 ? "cpu.weight" : "cpu.shares"),
            v2 ? "100" : "1024");
  for (const std::string& path : {base(), below("none")}) {
    const auto text = cgroupfs().read(path, Controller::kCpu, "cpu.podqos_test");
    ASSERT_FALSE(text) << path;
    EXPECT_EQ(text.error().code, ErrorCode::kNotFound) << path;
  }
}

TEST_F(Observe, SeesProcessesFarBelow) {
  const Pid first = start_process();
  const Pid second = start_process();
  execute({EnsureCgroup{below("a/b")}, MoveProcess{below("a/b"), first}, EnsureCgroup{below("c")},
           MoveProcess{below("c"), second}});
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
  ensure(base());
  const Pid process = start_process();
  const std::string procs = hierarchies().back().mount_point + base() + "/leaf";
  ASSERT_EQ(::mkdir(procs.c_str(), 0755), 0);
  std::ofstream{procs + "/cgroup.procs"} << process.value();
  EXPECT_EQ(cgroupfs().populated(base()), true);
  EXPECT_THAT(cgroupfs().processes(base()).value(), ElementsAre(process));
}

void compute() {
  for (;;)
    static_cast<void>(::getppid());
}

void fill_memory_and_stop() {
  constexpr std::size_t kSize = 4U << 20U;
  void* const memory =
      ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) std::memset(memory, 1, kSize);
  static_cast<void>(::raise(SIGSTOP));
}

/// Beside processes that compute the kernel takes long over the rest of a killed one, which is in
/// no cgroup.procs any more and may be counted in `populated`.
TEST_F(Observe, AKilledProcessThatIsInNoListDoesNotCount) {
  for (int i = 0; i < 4; ++i)
    static_cast<void>(start_process(compute));
  for (int round = 0; round < 50; ++round) {
    const pid_t child = start_child(fill_memory_and_stop);
    execute({EnsureCgroup{below("a")}, MoveProcess{below("a"), Pid{child}}});
    ASSERT_EQ(::waitpid(child, nullptr, WUNTRACED), child);
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    for (const Hierarchy& hierarchy : hierarchies()) {
      // Allowed as soon as all its processes are dying.
      while (::rmdir((hierarchy.mount_point + below("a")).c_str()) != 0)
        ASSERT_EQ(errno, EBUSY);
    }
    EXPECT_EQ(cgroupfs().populated(base()), false) << round;
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    reopen();
  }
}

/// In each hierarchy, as a container does that makes more cgroups than one call looks into: below
/// "wide", beside each other, and below "deep", in each other.
class ObserveNested : public Observe, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    Observe::SetUp();
    if (IsSkipped()) return;
    execute({EnsureCgroup{below("wide")}, EnsureCgroup{below("deep")}});
    for (const Hierarchy& hierarchy : hierarchies()) {
      for (int i = 0; i < 300; ++i)
        ASSERT_EQ(::mkdir(cat(hierarchy.mount_point, below("wide/"), i).c_str(), 0755), 0);
      deepest_ = below("deep");
      for (int i = 0; i < 40; ++i)
        ASSERT_EQ(::mkdir((hierarchy.mount_point + (deepest_ += "/x")).c_str(), 0755), 0);
    }
  }

  std::string deepest_;
};
INSTANTIATE_TEST_SUITE_P(Table, ObserveNested, ::testing::Values("wide", "deep"),
                         [](const auto& shape) { return std::string{shape.param}; });

TEST_P(ObserveNested, IsNotPopulatedForItself) {
  EXPECT_EQ(cgroupfs().populated(below(GetParam())), false);
  const auto processes = cgroupfs().processes(below(GetParam()));
  ASSERT_TRUE(processes) << processes.error().message;
  EXPECT_THAT(*processes, IsEmpty());
}

TEST_P(ObserveNested, IsPopulatedWithAProcessAnywhere) {
  const std::string place = GetParam() == std::string_view{"deep"} ? deepest_ : below("wide/299");
  const Pid process = start_process();
  // A new cpuset of v1 has no CPUs, and takes no process.
  for (const Hierarchy& hierarchy : hierarchies())
    std::ofstream{hierarchy.mount_point + place + "/cgroup.procs"} << process.value();
  ASSERT_EQ(cgroupfs().cgroup_of(process), place);
  EXPECT_EQ(cgroupfs().populated(below(GetParam())), true);
  const auto processes = cgroupfs().processes(below(GetParam()));
  ASSERT_FALSE(processes);
  EXPECT_EQ(processes.error().code, ErrorCode::kTooLarge);
}

constexpr std::size_t kPrivate = 16UL << 20U;
constexpr std::size_t kShared = 24UL << 20U;

bool fill(std::size_t size, int kind) {
  void* memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, kind | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  std::memset(memory, 1, size);
  return true;
}

/// Stops, writes to memory when it is continued, and stops again.
void write_to_memory() {
  ::raise(SIGSTOP);
  if (!fill(kPrivate, MAP_PRIVATE) || !fill(kShared, MAP_SHARED)) ::_exit(1);
  ::raise(SIGSTOP);
}

bool await_stop(Pid process) {
  int status = 0;
  return ::waitpid(static_cast<pid_t>(process.value()), &status, WUNTRACED) > 0 &&
         WIFSTOPPED(status);
}

TEST_F(Observe, CountsAllThatIsChargedByKind) {
  const Pid writer = start_process(write_to_memory);
  ASSERT_TRUE(await_stop(writer));
  ensure(base());
  auto charge = cgroupfs().memory_charge(base());
  ASSERT_TRUE(charge) << charge.error().message;
  EXPECT_EQ(charge->shmem, Bytes{0});
  EXPECT_EQ(charge->counted, Bytes{0});
  execute({EnsureCgroup{below("a")}, MoveProcess{below("a"), writer}});
  ::kill(static_cast<pid_t>(writer.value()), SIGCONT);
  ASSERT_TRUE(await_stop(writer));
  charge = cgroupfs().memory_charge(base());
  const auto is_late = [&] {
    return charge->shmem < Bytes{kShared} || charge->counted < Bytes{kPrivate + kShared};
  };
  // The kernel's own figures may be two seconds late, one kind without the other.
  while (charge && is_late()) {
    ::usleep(50'000);
    charge = cgroupfs().memory_charge(base());
  }
  end_processes();
  ASSERT_TRUE(charge) << charge.error().message;
  EXPECT_EQ(charge->shmem, Bytes{kShared});
  EXPECT_GE(charge->counted, Bytes{kPrivate + kShared});
  const Bytes page_size{::sysconf(_SC_PAGESIZE)};
  const std::int64_t processors = ::sysconf(_SC_NPROCESSORS_ONLN);
  core::MemoryCharge without_shmem = *charge;
  without_shmem.shmem = Bytes{0};
  EXPECT_EQ(core::shmem_charge(without_shmem, processors, page_size), core::ShmemCharge::kNone);
}

TEST_F(Observe, AttributesStayWithTheCgroup) {
  ensure(base());
  EXPECT_EQ(cgroupfs().attribute(base(), "trusted.podqos").value(), std::nullopt);
  const std::string record(5'000, 'r');  // longer than the first read
  execute({core::SetAttribute{base(), "trusted.podqos", record, core::OnRefusal::kFail}});
  reopen();
  EXPECT_EQ(cgroupfs().attribute(base(), "trusted.podqos").value(), record);
}

}  // namespace
}  // namespace podqos::cgroup
