#include "common/cgroup/removal.h"

#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/cgroup/fake_machine.h"

namespace podqos::cgroup {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// A pod's cgroup, and what was done to it.
class RemovalTest : public ::testing::TestWithParam<core::CgroupVersion> {
 protected:
  RemovalTest() { tree_.make("/kubepods/pod42"); }

  FakeTree tree_{GetParam()};
  std::vector<std::string> changes_;
  FakeMachine machine_{tree_, [this](const std::string& change) -> Status {
                         changes_.push_back(change);
                         return {};
                       }};
};

INSTANTIATE_TEST_SUITE_P(Versions, RemovalTest,
                         ::testing::Values(core::CgroupVersion::kV1, core::CgroupVersion::kV2));

TEST_P(RemovalTest, RemovesEndedContainersWithWhatTheyHaveNested) {
  tree_.make("/kubepods/pod42/a/init/inner");
  const auto report = remove_children(machine_, "/kubepods/pod42");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->removed, 3);
  EXPECT_THAT(changes_, ElementsAre("rmdir  /kubepods/pod42/a/init/inner",
                                    "rmdir  /kubepods/pod42/a/init", "rmdir  /kubepods/pod42/a"));
  EXPECT_TRUE(machine_.exists("/kubepods/pod42"));
}

TEST_P(RemovalTest, LeavesWhatLivesAndWhatIsExcepted) {
  tree_.start(Pid{7}, "/kubepods/pod42/alive");
  tree_.make("/kubepods/pod42/coming");
  core::ContainerRecord coming;
  coming.cgroup = "/kubepods/pod42/coming";
  const auto report = remove_children(machine_, "/kubepods/pod42", std::array{coming});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(changes_, IsEmpty());
  EXPECT_TRUE(machine_.exists("/kubepods/pod42/alive"));
  EXPECT_TRUE(machine_.exists("/kubepods/pod42/coming"));
}

TEST_P(RemovalTest, FreesTheMonitor) {
  tree_.start(Pid{7}, "/kubepods/pod42/podqos-monitor");
  const auto report = remove_children(machine_, "/kubepods/pod42");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(changes_, ElementsAre("move   7 -> /", "rmdir  /kubepods/pod42/podqos-monitor"));
  EXPECT_EQ(tree_.processes.at(Pid{7}).cgroup, "/");
}

TEST_P(RemovalTest, WaitsForAKilledContainer) {
  tree_.start(Pid{7}, "/kubepods/pod42/killed");
  tree_.on_wait = [this] { return tree_.processes.erase(Pid{7}) == 1; };
  const auto report = clear_children(machine_, "/kubepods/pod42");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->removed, 1);
  EXPECT_FALSE(machine_.exists("/kubepods/pod42/killed"));
}

TEST_P(RemovalTest, LeavesAContainerThatDoesNotEnd) {
  tree_.start(Pid{7}, "/kubepods/pod42/killed");
  const auto report = clear_children(machine_, "/kubepods/pod42");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->removed, 0);
  EXPECT_TRUE(machine_.exists("/kubepods/pod42/killed"));
}

TEST(RemovalOfAQuota, IsLiftedOnV1First) {
  FakeTree tree{core::CgroupVersion::kV1};
  std::vector<std::string> changes;
  FakeMachine machine{tree, [&](const std::string& change) -> Status {
                        changes.push_back(change);
                        return {};
                      }};
  tree.make("/pod/a");
  tree.cgroups.at("/pod/a").files.at("cpu.cfs_quota_us") = "50000";
  ASSERT_TRUE(remove_children(machine, "/pod"));
  EXPECT_THAT(changes, ElementsAre("write  /pod/a/cpu.cfs_quota_us = -1  # removed with its pod "
                                   "or container",
                                   "rmdir  /pod/a"));
}

TEST(IsHeldBySystemd, HoldsForAnEmptyUnitAlone) {
  FakeTree tree{core::CgroupVersion::kV2};
  FakeMachine machine{tree, [](const std::string& /*change*/) -> Status { return {}; }};
  tree.make("/kubepods.slice");
  tree.make("/kubepods");
  tree.start(Pid{7}, "/kubepods.slice/kubepods-pod42.slice");
  EXPECT_FALSE(is_held_by_systemd(machine, "/kubepods.slice"));
  tree.end(Pid{7});
  EXPECT_TRUE(is_held_by_systemd(machine, "/kubepods.slice"));
  EXPECT_FALSE(is_held_by_systemd(machine, "/kubepods"));
  EXPECT_FALSE(is_held_by_systemd(machine, "/other.slice"));
}

}  // namespace
}  // namespace podqos::cgroup
