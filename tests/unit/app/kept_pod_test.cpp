// A pod that has ended and comes again while its cgroup stays, since tmpfs memory is charged to it.

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/app/containers.h"
#include "tests/unit/app/fake_node.h"

namespace podqos::app {
namespace {

using containers::kBatchContainer;
using containers::kWebContainer;
using containers::kWebPod;
using ::testing::HasSubstr;
using ::testing::Not;

class KeptPod : public ::testing::Test {
 protected:
  void SetUp() override {
    node_.settings.log_sink = log_;
    node_.settings.release_delay_seconds = 30;
  }
  void TearDown() override { std::filesystem::remove(log_); }

  void run_and_end() {
    node_.run(kWebContainer, Pid{10});
    auto& pod = node_.tree.cgroups.at(kWebPod);
    pod.usage = pod.shmem = std::int64_t{1} << 20U;
    pod.files["memory.events"] = "oom 0\noom_kill 1";
    ++node_.tree.oom_kills;
    node_.stop(kWebContainer, Pid{10});
    ASSERT_TRUE(node_.tree.cgroups.contains(kWebPod));
    ASSERT_THAT(logged(), HasSubstr("container web: OOM-killed"));
    std::filesystem::remove(log_);
  }
  [[nodiscard]] std::string logged() const {
    std::ifstream file{log_};
    return {std::istreambuf_iterator<char>{file}, {}};
  }

  std::string log_ = cat(::testing::TempDir(), "kept-pod-", ::getpid(), ".log");
  FakeNode node_{core::CgroupVersion::kV2};
};

/// What the new pod has no rule for, and another program may have set.
TEST_F(KeptPod, HasNoValuesOfTheFormerOne) {
  node_.settings.reserve_memory = true;
  node_.settings.pod_pids_limit = 64;
  run_and_end();
  ASSERT_EQ(node_.file(kWebPod, "memory.low"), "67108864");
  ASSERT_EQ(node_.file(kWebPod, "pids.max"), "64");
  node_.tree.make_idle(kWebPod);
  node_.settings.pod_pids_limit.reset();
  node_.run({.id = "web", .uid = "a", .annotations = {{"podqos.io/requests.web", "cpu=500m"}}},
            Pid{11});
  EXPECT_EQ(node_.file(kWebPod, "memory.low"), "0");
  EXPECT_EQ(node_.file(kWebPod, "pids.max"), "max");
  EXPECT_EQ(node_.file(kWebPod, "cpu.idle"), "0");
  EXPECT_EQ(node_.shares(kWebPod), node_.written(512));
}

/// Which its engine names. It is removed first, and that is no loss of the state.
TEST_F(KeptPod, GivesWayToTheNextOneIfItIsDue) {
  node_.run(kBatchContainer, Pid{12});
  run_and_end();
  auto& pod = node_.tree.cgroups.at(kWebPod);
  pod.usage = pod.shmem = 0;
  node_.records.come_due();
  const auto admission = node_.admit(kWebContainer, Pid{1011}, cat(kWebPod, "/web"));
  ASSERT_TRUE(admission) << admission.error().message;
  EXPECT_EQ((*admission)->container.cgroup, cat(kWebPod, "/web"));
  EXPECT_THAT(logged(), Not(HasSubstr("restoring all")));
}

/// The kernel goes on counting in the cgroup.
TEST_F(KeptPod, IsNotToldOfTheKillsOfTheFormerOne) {
  run_and_end();
  node_.run(kWebContainer, Pid{11});
  ++node_.tree.oom_kills;  // elsewhere
  node_.stop(kWebContainer, Pid{11});
  EXPECT_THAT(logged(), Not(HasSubstr("container web: OOM-killed")));
}

}  // namespace
}  // namespace podqos::app
