#include "common/cgroup/removal.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/cgroup/fake_machine.h"

namespace podqos::cgroup {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const RemoveChildren kUntilEmpty{.cgroup = "/kubepods/pod42",
                                 .until = RemoveChildren::Until::kEmpty};

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
  const auto report = remove_children(machine_, {.cgroup = "/kubepods/pod42"});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(changes_, ElementsAre("rmdir  /kubepods/pod42/a/init/inner",
                                    "rmdir  /kubepods/pod42/a/init", "rmdir  /kubepods/pod42/a"));
  EXPECT_TRUE(machine_.exists("/kubepods/pod42"));
}

/// The lock is held: it neither waits for what another attempt would remove, nor goes on by itself.
TEST_P(RemovalTest, RemovesAPartOfMuchThatIsNested) {
  tree_.make("/kubepods/pod42/a/init/inner");
  tree_.most_nested = 1;
  tree_.on_wait = [] {
    ADD_FAILURE() << "waits";
    return false;
  };
  const auto report = remove_children(machine_, kUntilEmpty);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(report->partly);
  const auto removal = remove_pod(machine_, "/kubepods/pod42");
  ASSERT_TRUE(removal) << removal.error().message;
  EXPECT_EQ(removal->removed, Removed::kGone);
  EXPECT_THAT(changes_,
              ElementsAre("rmdir  /kubepods/pod42/a/init/inner", "rmdir  /kubepods/pod42/a/init",
                          "rmdir  /kubepods/pod42/a", "rmdir  /kubepods/pod42"));
}

TEST_P(RemovalTest, APodWithMuchThatIsNestedIsPartlyRemoved) {
  constexpr const char* kSlice = "/kubepods.slice/kubepods-pod42.slice";
  tree_.make(cat(kSlice, "/a/init/inner"));
  tree_.most_nested = 1;
  const auto removal = remove_pod(machine_, kSlice);
  ASSERT_TRUE(removal) << removal.error().message;
  EXPECT_EQ(removal->removed, Removed::kPartly);
}

TEST_P(RemovalTest, LeavesWhatLivesAndWhatIsExcepted) {
  tree_.start(Pid{7}, "/kubepods/pod42/alive");
  tree_.make("/kubepods/pod42/coming");
  const auto report = remove_children(
      machine_, {.cgroup = "/kubepods/pod42", .except = {"/kubepods/pod42/coming"}});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(changes_, IsEmpty());
  EXPECT_TRUE(machine_.exists("/kubepods/pod42/alive"));
  EXPECT_TRUE(machine_.exists("/kubepods/pod42/coming"));
}

TEST_P(RemovalTest, FreesTheMonitor) {
  tree_.start(Pid{7}, "/kubepods/pod42/podqos-monitor");
  const auto report = remove_children(machine_, {.cgroup = "/kubepods/pod42"});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(changes_, ElementsAre("move   7 -> /", "rmdir  /kubepods/pod42/podqos-monitor"));
  EXPECT_EQ(tree_.processes.at(Pid{7}).cgroup, "/");
}

TEST_P(RemovalTest, WaitsForAKilledContainer) {
  tree_.start(Pid{7}, "/kubepods/pod42/killed");
  tree_.on_wait = [this] { return tree_.processes.erase(Pid{7}) == 1; };
  const auto report = remove_children(machine_, kUntilEmpty);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(machine_.exists("/kubepods/pod42/killed"));
}

TEST_P(RemovalTest, LeavesAContainerThatDoesNotEnd) {
  tree_.start(Pid{7}, "/kubepods/pod42/killed");
  const auto report = remove_children(machine_, kUntilEmpty);
  ASSERT_TRUE(report) << report.error().message;
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
  ASSERT_TRUE(remove_children(machine, {.cgroup = "/pod"}));
  EXPECT_THAT(changes, ElementsAre("write  /pod/a/cpu.cfs_quota_us = -1  # removed with its pod "
                                   "or container",
                                   "rmdir  /pod/a"));
}

TEST_P(RemovalTest, RemovesAPodWithWhatIsLeftInIt) {
  tree_.make("/kubepods/pod42/left");
  tree_.make("/elsewhere/own");
  const auto removal = remove_pod(machine_, "/kubepods/pod42");
  ASSERT_TRUE(removal) << removal.error().message;
  EXPECT_EQ(removal->removed, Removed::kGone);
  EXPECT_FALSE(machine_.exists("/kubepods/pod42"));
  EXPECT_TRUE(machine_.exists("/elsewhere/own"));
}

TEST_P(RemovalTest, APodInUseStays) {
  tree_.start(Pid{7}, "/kubepods/pod42/alive");
  const auto removal = remove_pod(machine_, "/kubepods/pod42");
  ASSERT_TRUE(removal) << removal.error().message;
  EXPECT_EQ(removal->removed, Removed::kInUse);
}

/// systemd removes the directory of a unit that it has stopped when it comes to it.
TEST_P(RemovalTest, WaitsForSystemdThatHoldsAnEmptySlice) {
  constexpr const char* kSlice = "/kubepods.slice/kubepods-pod42.slice";
  tree_.make(kSlice);
  tree_.held_by_systemd.insert(kSlice);
  tree_.on_wait = [this] {
    tree_.cgroups.erase(kSlice);
    return true;
  };
  const auto removal = remove_pod(machine_, kSlice);
  ASSERT_TRUE(removal) << removal.error().message;
  EXPECT_EQ(removal->removed, Removed::kGone);
}

TEST_P(RemovalTest, LeavesAnEmptySliceThatSystemdHoldsForLong) {
  constexpr const char* kSlice = "/kubepods.slice/kubepods-pod42.slice";
  tree_.make(kSlice);
  tree_.held_by_systemd.insert(kSlice);
  const auto removal = remove_pod(machine_, kSlice);
  ASSERT_TRUE(removal) << removal.error().message;
  EXPECT_EQ(removal->removed, Removed::kHeldBySystemd);
}

TEST_P(RemovalTest, RemovesTheTreeUpToTheTop) {
  tree_.make("/mine/podqos/kubepods/burstable");
  tree_.make("/mine/podqos/kubepods/besteffort");
  const auto removal = remove_tree(machine_, "/mine/podqos/kubepods", "/mine/podqos");
  ASSERT_TRUE(removal) << removal.error().message;
  EXPECT_EQ(removal->removed, Removed::kGone);
  EXPECT_TRUE(machine_.exists("/mine"));
  EXPECT_FALSE(machine_.exists("/mine/podqos"));
}

TEST_P(RemovalTest, TheCgroupOfAnotherProgramKeepsTheRoot) {
  tree_.make("/podqos/kubepods/burstable");
  tree_.make("/podqos/kubepods/besteffort/other");
  const auto removal = remove_tree(machine_, "/podqos/kubepods", "/podqos");
  ASSERT_TRUE(removal) << removal.error().message;
  EXPECT_EQ(removal->removed, Removed::kInUse);
  EXPECT_FALSE(machine_.exists("/podqos/kubepods/burstable"));
  EXPECT_TRUE(machine_.exists("/podqos/kubepods/besteffort/other"));
}

}  // namespace
}  // namespace podqos::cgroup
