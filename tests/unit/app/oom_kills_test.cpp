// What is said of OOM kills when a container ends, on a machine in memory.
#include "common/app/oom_kills.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/app/fake_node.h"

namespace podqos::app {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kRoot = "/podqos/kubepods";
const std::string kTier = kRoot + "/besteffort";
const std::string kPod = kTier + "/poda";
const FakeContainer kApp{.id = "app", .uid = "a"};
const FakeContainer kOther{.id = "other", .uid = "a"};

/// BestEffort pod "a", and a log. What the kernel logs is that of Linux 6.18.
class OomKills : public ::testing::Test {
 protected:
  void SetUp() override {
    node_.settings.log_sink = log_;
    node_.tree.kernel_log = "";
  }
  void TearDown() override { std::filesystem::remove(log_); }

  /// The kernel kills a process of the cgroup `task` by the limit of another.
  void kill(const std::string& limited, const std::string& task, const char* limit = "389120") {
    const int second = 100 + static_cast<int>(++node_.tree.oom_kills);
    const std::string time = cat("[  ", second, ".000001] ");
    if (node_.tree.kernel_log)
      *node_.tree.kernel_log += cat(
          "<6>", time, "memory: usage ", limit, "kB, limit ", limit, "kB, failcnt 85\n<6>", time,
          "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,"
          "oom_memcg=",
          limited, ",task_memcg=", task, ",task=dd,pid=18940,uid=0\n");
  }
  /// memory.events of v2.
  void count(const std::string& path, const char* events) {
    node_.tree.cgroups.at(path).files["memory.events"] = events;
  }
  [[nodiscard]] std::string logged() const {
    std::ifstream file{log_};
    return {std::istreambuf_iterator<char>{file}, {}};
  }

  std::string log_ = cat(::testing::TempDir(), "oom-kills-", ::getpid(), ".log");
  FakeNode node_{core::CgroupVersion::kV2};
};

TEST_F(OomKills, AreReportedWithTheLimitOfThen) {
  node_.run(kApp, Pid{10});
  kill(kTier, kPod + "/app");
  count(kPod, "oom 0\noom_kill 1");
  node_.tree.cgroups.at(kTier).files["memory.max"] = "1";
  node_.tree.cgroups.at(kPod).files["memory.peak"] = "389021696";
  node_.stop(kApp, Pid{10});
  EXPECT_THAT(logged(), HasSubstr("container app: OOM-killed by the limit of tier besteffort "
                                  "(380Mi); its pod had used up to 371Mi\n"));
  EXPECT_THAT(logged(), HasSubstr("returned to the tiers; processes of it were OOM-killed\n"));
}

TEST_F(OomKills, OfVersion1AreReportedWithoutTheContainersCgroup) {
  node_.tree = cgroup::FakeTree{core::CgroupVersion::kV1};
  node_.tree.kernel_log = "";
  node_.run(kApp, Pid{10});
  kill(kPod + "/app", kPod + "/app");
  node_.stop(kApp, Pid{10});
  EXPECT_THAT(logged(), HasSubstr("container app: OOM-killed by its own limit (380Mi)\n"));
}

TEST_F(OomKills, OfAnEarlierContainerAreNotTakenForThoseOfALaterOne) {
  node_.run(kApp, Pid{10});
  kill(kTier, kPod + "/app");
  node_.stop(kApp, Pid{10});
  std::filesystem::remove(log_);
  node_.run(kApp, Pid{11});
  kill("/system.slice", "/system.slice/a.service");
  node_.stop(kApp, Pid{11});
  EXPECT_THAT(logged(), Not(HasSubstr("OOM-killed")));
}

TEST_F(OomKills, OfTwoContainersAreToldApart) {
  node_.run(kApp, Pid{10});
  node_.run(kOther, Pid{11});
  kill(kPod + "/other", kPod + "/other/nested");
  kill(kRoot, kPod + "/app");
  count(kPod, "oom 1\noom_kill 2");
  node_.stop(kApp, Pid{10});
  EXPECT_THAT(logged(), HasSubstr("container app: OOM-killed by the limit of all pods"));
  EXPECT_THAT(logged(), HasSubstr("container other: OOM-killed by its own limit"));
  std::filesystem::remove(log_);
  node_.stop(kOther, Pid{11});
  EXPECT_THAT(logged(), Not(HasSubstr("container other: OOM-killed")));
}

TEST_F(OomKills, AreReportedOnceByEachLimit) {
  node_.run(kApp, Pid{10});
  for (const char* limit : {"1024", "2048"})
    kill(kPod + "/app", kPod + "/app", limit);
  count(kPod, "oom 2\noom_kill 2");
  node_.stop(kApp, Pid{10});
  EXPECT_THAT(logged(), HasSubstr("container app: OOM-killed by its own limit (2Mi)\n"));
  EXPECT_THAT(logged(), Not(HasSubstr("(1Mi)")));
}

// memory.oom.group, which kubelets set: of the group's other processes the kernel logs the pids.
TEST_F(OomKills, OfAGroupAreReportedByTheLimitOfTheFirst) {
  node_.run(kApp, Pid{10});
  kill(kPod + "/app", kPod + "/app/nested");
  *node_.tree.kernel_log +=
      cat("<3>[  101.000078] Memory cgroup out of memory: Killed process 18940 (dd) total-vm:1kB\n",
          "<6>[  101.000090] Tasks in ", kPod,
          "/app are going to be killed due to memory.oom.group set\n",
          "<3>[  101.000099] Memory cgroup out of memory: Killed process 10 (sh) total-vm:1kB\n");
  count(kPod, "oom 1\noom_kill 2\noom_group_kill 1");
  node_.stop(kApp, Pid{10});
  EXPECT_THAT(logged(), HasSubstr("container app: OOM-killed by its own limit (380Mi)\n"));
  EXPECT_THAT(logged(), Not(HasSubstr("does not say by whose limit")));
}

TEST_F(OomKills, AreSaidWithoutALimitIfTheLogCannotBeRead) {
  node_.tree.kernel_log = std::nullopt;
  node_.run(kApp, Pid{10});
  node_.run(kOther, Pid{11});
  kill(kPod, kPod + "/app");
  count(kPod, "oom 1\noom_kill 1");
  node_.stop(kApp, Pid{10});
  EXPECT_THAT(logged(), HasSubstr("pod a: OOM-killed; the kernel's log does not say by whose"));
  kill(kPod, kPod + "/other");
  count(kPod, "oom 2\noom_kill 2");
  node_.stop(kOther, Pid{11});
  EXPECT_THAT(logged(), HasSubstr("pod a, container other: OOM-killed; the kernel's log does not"));
}

TEST(CountOomKills, HasThoseThatWereNotReported) {
  core::PodRecord record;
  record.cgroup = kPod;
  record.oom_kills = core::OomKills{.reported = 2, .counted = 1};
  for (const char* id : {"app", "ended"})
    record.containers.emplace_back().cgroup = cat(kPod, "/", id);
  const auto count = [&](core::CgroupVersion version, const std::string& path, const char* file,
                         const char* text) {
    cgroup::FakeTree tree{version};
    for (const std::string& each : {kRoot, kTier, kPod, kPod + "/app"})
      tree.make(each);
    tree.cgroups.at(path).files[file] = text;
    cgroup::FakeMachine machine{tree, [](const std::string&) { return Status{}; }};
    return count_oom_kills(machine, record);
  };
  using enum core::CgroupVersion;
  EXPECT_EQ(count(kV1, kPod + "/app", "memory.oom_control", "under_oom 0\noom_kill 3"), 4);
  EXPECT_EQ(count(kV1, kPod + "/app", "memory.oom_control", "under_oom 0\noom_kill 1"), 2);
  // The pod's counter of v2 has those of all its containers.
  EXPECT_EQ(count(kV2, kPod, "memory.events", "oom_kill 3"), 4);
  EXPECT_EQ(count(kV2, kPod, "memory.events", "oom_kill 0"), 2) << "in a cgroup made again";
}

}  // namespace
}  // namespace podqos::app
