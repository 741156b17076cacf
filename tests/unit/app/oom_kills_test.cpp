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

/// BestEffort pod "a", and a log.
class OomKills : public ::testing::Test {
 protected:
  void SetUp() override { node_.settings.log_sink = log_; }
  void TearDown() override { std::filesystem::remove(log_); }

  /// memory.events of v2.
  void count(const std::string& path, const char* all, const char* own) {
    auto& files = node_.tree.cgroups.at(path).files;
    files["memory.events"] = all;
    files["memory.events.local"] = own;
  }
  [[nodiscard]] std::string logged() const {
    std::ifstream file{log_};
    return {std::istreambuf_iterator<char>{file}, {}};
  }

  std::string log_ = cat(::testing::TempDir(), "oom-kills-", ::getpid(), ".log");
  FakeNode node_{core::CgroupVersion::kV2};
};

TEST_F(OomKills, AreReportedWithTheLimit) {
  node_.run(kApp, Pid{10});
  count(kPod, "oom 0\noom_kill 1\noom_group_kill 1", "oom 0\noom_kill 0");
  count(kTier, "oom 1\noom_kill 1", "oom 1\noom_kill 0");
  count(kRoot, "oom 1\noom_kill 1", "oom 0\noom_kill 0");
  node_.tree.cgroups.at(kTier).files["memory.max"] = "398458880";
  node_.tree.cgroups.at(kPod).files["memory.peak"] = "389021696";
  node_.stop(kApp, Pid{10});
  EXPECT_THAT(logged(), HasSubstr("container app: OOM-killed by the limit of tier besteffort "
                                  "(380Mi); its pod had used up to 371Mi\n"));
  EXPECT_THAT(logged(), HasSubstr("returned to the tiers; processes of it were OOM-killed\n"));
}

TEST_F(OomKills, OfAnEarlierPodAreNotTakenForThoseOfALaterOne) {
  node_.run({.id = "stays", .uid = "b"}, Pid{9});
  node_.run(kApp, Pid{10});
  count(kPod, "oom 0\noom_kill 1", "oom 0\noom_kill 0");
  count(kTier, "oom 1\noom_kill 1", "oom 1\noom_kill 0");
  node_.stop(kApp, Pid{10});
  std::filesystem::remove(log_);
  node_.run(kApp, Pid{11});
  count(kPod, "oom 0\noom_kill 1", "oom 0\noom_kill 0");
  node_.stop(kApp, Pid{11});
  EXPECT_THAT(logged(), HasSubstr("OOM-killed as the node, or a cgroup above /podqos/kubepods, "));
}

TEST_F(OomKills, OfAnotherContainerAreReportedAtItsEnd) {
  node_.run(kApp, Pid{10});
  node_.run(kOther, Pid{11});
  count(kPod, "oom 1\noom_kill 1", "oom 0\noom_kill 0");
  count(kPod + "/other", "oom 1\noom_kill 1", "oom 1\noom_kill 1");
  node_.stop(kApp, Pid{10});
  EXPECT_THAT(logged(), Not(HasSubstr("OOM-killed")));
  node_.stop(kOther, Pid{11});
  EXPECT_THAT(logged(), HasSubstr("container other: OOM-killed by its own limit"));
}

TEST_F(OomKills, OfVersion1AreCountedInTheContainersCgroup) {
  node_.tree = cgroup::FakeTree{core::CgroupVersion::kV1};
  node_.run(kApp, Pid{10});
  auto cgroup = node_.tree.cgroups.at(kPod + "/app");
  cgroup.files["memory.oom_control"] = "oom_kill_disable 0\nunder_oom 0\noom_kill 1";
  cgroup.files["memory.failcnt"] = "66";
  node_.tree.end(Pid{10});
  node_.tree.cgroups[kPod + "/app"] = cgroup;
  ASSERT_TRUE(node_.end(kApp));
  EXPECT_THAT(logged(), HasSubstr("container app: OOM-killed by its own limit"));
}

TEST(CountOomKills, HasThoseThatWereNotReported) {
  core::PodRecord record;
  record.cgroup = kPod;
  record.oom = core::OomCounts{.kills = 2};
  for (const char* id : {"app", "ended"}) {
    core::ContainerRecord& container = record.containers.emplace_back();
    container.cgroup = cat(kPod, "/", id);
    container.oom = core::ReportedOoms{.kills = 1};
  }
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
  EXPECT_EQ(count(kV2, kPod, "memory.events", "oom_kill 3"), 3);
  EXPECT_EQ(count(kV2, kPod, "memory.events", "oom_kill 0"), 2) << "in a cgroup made again";
}

}  // namespace
}  // namespace podqos::app
