#include "common/cgroup/cgroup_usage.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "tests/unit/cgroup/fake_machine.h"
#include "tests/unit/cgroup/own_cgroup.h"

namespace podqos::cgroup {
namespace {

using core::CgroupVersion;
using ::testing::Ge;
using ::testing::Optional;

/// Of a cgroup on a fake machine that has these files.
std::optional<CgroupUsage> usage_with(CgroupVersion version,
                                      const std::map<std::string, std::string>& files) {
  FakeTree tree{version};
  tree.make("/pod");
  tree.cgroups.at("/pod").usage = 10'485'760;
  for (const auto& [file, text] : files)
    tree.cgroups.at("/pod").files[file] = without_newline(text);
  FakeMachine machine{tree, [](const std::string& change) { return fail(ErrorCode::kIo, change); }};
  auto usage = usage_of(CgroupView{machine, "/pod"});
  if (usage) usage->at = {};
  return usage;
}

// What Linux 6.18 shows, shortened.

TEST(UsageOf, ReadsFilesOfV1) {
  const auto usage = usage_with(
      CgroupVersion::kV1,
      {{"cpuacct.usage", "18325412345\n"},
       {"cpu.stat", "nr_periods 40\nnr_throttled 38\nthrottled_time 3042\nwait_sum 0\n"},
       {"memory.stat",
        "cache 1\nswap 11\ninactive_file 12\nhierarchical_memory_limit 9223372036854771712\n"
        "total_cache 2\ntotal_swap 4096\ntotal_inactive_file 8192\ntotal_unevictable 0\n"},
       {"memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"},
       {"pids.current", "7\n"}});
  EXPECT_EQ(usage, (CgroupUsage{.cpu = Micros{18'325'412},
                                .periods = 40,
                                .throttled_periods = 38,
                                .memory = Bytes{10'485'760},
                                .inactive_file = Bytes{8192},
                                .swap = Bytes{4096},
                                .oom_kills = 3,
                                .pids = 7}));
}

TEST(UsageOf, ReadsFilesOfV2) {
  const auto usage =
      usage_with(CgroupVersion::kV2,
                 {{"cpu.stat",
                   "usage_usec 18325412\nuser_usec 18000000\nsystem_usec 325412\nnr_periods 40\n"
                   "nr_throttled 38\nthrottled_usec 3042\nnr_bursts 0\nburst_usec 0\n"},
                  {"cpu.pressure",
                   "some avg10=1.50 avg60=0.00 avg300=0.00 total=3042\n"
                   "full avg10=0.00 avg60=0.00 avg300=0.00 total=42\n"},
                  {"memory.stat", "anon 5\nfile 6\ninactive_anon 1\ninactive_file 8192\n"},
                  {"memory.swap.current", "4096\n"},
                  {"memory.events", "low 0\nhigh 0\nmax 4\noom 3\noom_kill 2\noom_group_kill 1\n"},
                  {"memory.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=99\n"},
                  {"pids.current", "7\n"}});
  EXPECT_EQ(usage,
            (CgroupUsage{.cpu = Micros{18'325'412},
                         .periods = 40,
                         .throttled_periods = 38,
                         .memory = Bytes{10'485'760},
                         .inactive_file = Bytes{8192},
                         .swap = Bytes{4096},
                         .oom_kills = 2,
                         .pids = 7,
                         .cpu_pressure = Pressure{.waiting = Micros{3042}, .stalled = Micros{42}},
                         .memory_pressure = Pressure{.waiting = Micros{99}, .stalled = {}}}));
}

TEST(UsageOf, LeavesOutWhatIsMissingOrMalformed) {
  for (const auto version : {CgroupVersion::kV1, CgroupVersion::kV2})
    for (const char* text : {"", "\n", "garbage", "inactive_file \nusage_usec x\n"})
      for (const char* file : {"cpuacct.usage", "cpu.stat", "cpu.pressure", "memory.stat",
                               "memory.events", "pids.current", "unknown"})
        EXPECT_EQ(usage_with(version, {{file, text}}), CgroupUsage{.memory = Bytes{10'485'760}})
            << file << ": " << text;
}

/// Reads a cgroup of the test's own.
class ReadUsage : public OwnCgroup {
 protected:
  void SetUp() override {
    OwnCgroup::SetUp();
    if (IsSkipped()) return;
    ensure(base());
    ensure(below("c"));
  }
  [[nodiscard]] static Cgroupfs machine(std::size_t most_files = 1000) {
    auto opened = Cgroupfs::open({.access = Access::kRead, .most_files = most_files});
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  /// Into a child: on cgroup v2 one that enables controllers for its children has no processes.
  void enter(Pid pid) {
    for (const Hierarchy& hierarchy : hierarchies()) {
      const std::string leaf = hierarchy.mount_point + below("c/leaf");
      ::mkdir(leaf.c_str(), 0755);
      std::ofstream{leaf + "/cgroup.procs"} << pid.value();
    }
  }
  /// Removes and makes it again.
  void replace() {
    for (const Hierarchy& hierarchy : hierarchies())
      static_cast<void>(::rmdir((hierarchy.mount_point + below("c")).c_str()));
    ensure(below("c"));
  }
  [[nodiscard]] bool has_pids() { return !hierarchy_with("pids").mount_point.empty(); }
};

TEST_F(ReadUsage, KnowsWhatTheKernelCounts) {
  Cgroupfs machine = ReadUsage::machine();
  enter(start_process());
  const auto usage = usage_of(CgroupView{machine, below("c")});
  ASSERT_TRUE(usage);
  if (has_pids()) {
    EXPECT_THAT(usage->pids, Optional(1));
  }
  EXPECT_THAT(usage->memory, Optional(Ge(Bytes{})));
  EXPECT_THAT(usage->oom_kills, Optional(0));
  EXPECT_THAT(usage->periods, Optional(0));
}

TEST_F(ReadUsage, ReadsAgainWhetherOrNotFilesStayOpen) {
  for (const std::size_t most_files : {0U, 1000U}) {
    Cgroupfs machine = ReadUsage::machine(most_files);
    const auto before = usage_of(CgroupView{machine, below("c")});
    ASSERT_TRUE(before);
    enter(start_process());
    const auto after = usage_of(CgroupView{machine, below("c")});
    ASSERT_TRUE(after);
    if (has_pids()) {
      EXPECT_EQ(after->pids, *before->pids + 1);
    }
    EXPECT_GT(after->at, before->at);
  }
}

TEST_F(ReadUsage, FindsNothingOfACgroupThatHasGone) {
  Cgroupfs machine = ReadUsage::machine();
  ASSERT_TRUE(usage_of(CgroupView{machine, below("c")}));
  for (const Hierarchy& hierarchy : hierarchies())
    static_cast<void>(::rmdir((hierarchy.mount_point + below("c")).c_str()));
  EXPECT_FALSE(usage_of(CgroupView{machine, below("c")}));
  EXPECT_FALSE(usage_of(CgroupView{machine, below("never")}));
  EXPECT_FALSE(usage_of(CgroupView{machine, "no/path"}));
}

TEST_F(ReadUsage, ReadsTheOneThatHasTakenItsPlace) {
  Cgroupfs machine = ReadUsage::machine();
  ASSERT_TRUE(usage_of(CgroupView{machine, below("c")}));
  replace();
  enter(start_process());
  const auto usage = usage_of(CgroupView{machine, below("c")});
  ASSERT_TRUE(usage);
  if (has_pids()) {
    EXPECT_THAT(usage->pids, Optional(1));
  }
}

TEST_F(ReadUsage, ClosesFilesOfCgroupsThatAreNoLongerRead) {
  const auto open_files = [] {
    return std::ranges::distance(std::filesystem::directory_iterator{"/proc/self/fd"});
  };
  Cgroupfs machine = ReadUsage::machine();
  const auto before = open_files();
  ASSERT_TRUE(usage_of(CgroupView{machine, below("c")}));
  machine.close_unread();
  EXPECT_GT(open_files(), before);
  machine.close_unread();
  EXPECT_LE(open_files(), before + 1);  // the root of v2 may have been opened since
}

}  // namespace
}  // namespace podqos::cgroup
