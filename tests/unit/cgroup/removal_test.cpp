#include "common/cgroup/removal.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/cgroup/fake_machine.h"

namespace podqos::cgroup {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kPod42 = "/kubepods/pod42";
constexpr const char* kSlice = "/kubepods.slice/kubepods-pod42.slice";

/// A pod's cgroup, and what was done to it.
class RemovalTest : public ::testing::TestWithParam<core::CgroupVersion> {
 protected:
  RemovalTest() { tree_.make(kPod42); }

  Report remove_children_of_pod(const RemoveChildren& step) {
    const auto report = remove_children(machine_, step);
    EXPECT_TRUE(report) << report.error().message;
    return report.value_or(Report{});
  }
  static Removed result_of(const Result<Removal>& removal) {
    EXPECT_TRUE(removal) << removal.error().message;
    return removal.value_or(Removal{}).removed;
  }

  const RemoveChildren once_{.cgroup = kPod42};
  const RemoveChildren until_empty_{.cgroup = kPod42, .until = RemoveChildren::Until::kEmpty};
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
  remove_children_of_pod(once_);
  EXPECT_THAT(changes_, ElementsAre("rmdir  /kubepods/pod42/a/init/inner",
                                    "rmdir  /kubepods/pod42/a/init", "rmdir  /kubepods/pod42/a"));
  EXPECT_TRUE(machine_.exists(kPod42));
}

/// The lock is held: it neither waits for what another attempt would remove, nor goes on by itself.
TEST_P(RemovalTest, RemovesAPartOfMuchThatIsNested) {
  tree_.make("/kubepods/pod42/a/init/inner");
  tree_.most_nested = 1;
  tree_.on_wait = [] {
    ADD_FAILURE() << "waits";
    return false;
  };
  EXPECT_TRUE(remove_children_of_pod(until_empty_).partly);
  EXPECT_EQ(result_of(remove_pod(machine_, kPod42)), Removed::kGone);
  EXPECT_THAT(changes_,
              ElementsAre("rmdir  /kubepods/pod42/a/init/inner", "rmdir  /kubepods/pod42/a/init",
                          "rmdir  /kubepods/pod42/a", "rmdir  /kubepods/pod42"));
  tree_.make(cat(kSlice, "/a/init/inner"));
  EXPECT_EQ(result_of(remove_pod(machine_, kSlice)), Removed::kPartly);
}

TEST_P(RemovalTest, LeavesWhatLivesAndWhatIsExcepted) {
  tree_.start(Pid{7}, "/kubepods/pod42/alive");
  tree_.make("/kubepods/pod42/coming");
  remove_children_of_pod({.cgroup = kPod42, .except = {"/kubepods/pod42/coming"}});
  remove_children_of_pod({.cgroup = kPod42,
                          .until = RemoveChildren::Until::kEmpty,
                          .except = {"/kubepods/pod42/coming"}});
  EXPECT_THAT(changes_, IsEmpty());
  EXPECT_EQ(result_of(remove_pod(machine_, kPod42)), Removed::kInUse);
  EXPECT_TRUE(machine_.exists("/kubepods/pod42/alive"));
}

TEST_P(RemovalTest, FreesTheMonitor) {
  tree_.start(Pid{7}, "/kubepods/pod42/podqos-monitor");
  remove_children_of_pod(once_);
  EXPECT_THAT(changes_, ElementsAre("move   7 -> /", "rmdir  /kubepods/pod42/podqos-monitor"));
  EXPECT_EQ(tree_.processes.at(Pid{7}).cgroup, "/");
}

TEST_P(RemovalTest, WaitsForAKilledContainer) {
  tree_.start(Pid{7}, "/kubepods/pod42/killed");
  tree_.on_wait = [this] { return tree_.processes.erase(Pid{7}) == 1; };
  remove_children_of_pod(until_empty_);
  EXPECT_FALSE(machine_.exists("/kubepods/pod42/killed"));
}

TEST_P(RemovalTest, LiftsAQuotaOnV1First) {
  tree_.make("/kubepods/pod42/a");
  if (!tree_.is_v2()) tree_.cgroups.at("/kubepods/pod42/a").files.at("cpu.cfs_quota_us") = "50000";
  remove_children_of_pod(once_);
  std::vector<std::string> want{"rmdir  /kubepods/pod42/a"};
  if (!tree_.is_v2()) {
    want.insert(want.begin(),
                "write  /kubepods/pod42/a/cpu.cfs_quota_us = -1  # removed with its pod or "
                "container");
  }
  EXPECT_EQ(changes_, want);
}

TEST_P(RemovalTest, RemovesAPodWithWhatIsLeftInIt) {
  tree_.make("/kubepods/pod42/left");
  tree_.make("/elsewhere/own");
  EXPECT_EQ(result_of(remove_pod(machine_, kPod42)), Removed::kGone);
  EXPECT_FALSE(machine_.exists(kPod42));
  EXPECT_TRUE(machine_.exists("/elsewhere/own"));
}

/// systemd removes the directory of a unit that it has stopped when it comes to it.
TEST_P(RemovalTest, WaitsForSystemdThatHoldsAnEmptySlice) {
  tree_.make(kSlice);
  tree_.held_by_systemd.insert(kSlice);
  EXPECT_EQ(result_of(remove_pod(machine_, kSlice)), Removed::kHeldBySystemd);
  tree_.on_wait = [this] {
    tree_.cgroups.erase(kSlice);
    return true;
  };
  EXPECT_EQ(result_of(remove_pod(machine_, kSlice)), Removed::kGone);
}

TEST_P(RemovalTest, RemovesTheTreeUpToTheTop) {
  tree_.make("/mine/podqos/kubepods/burstable");
  tree_.make("/mine/podqos/kubepods/besteffort");
  EXPECT_EQ(result_of(remove_tree(machine_, "/mine/podqos/kubepods", "/mine/podqos")),
            Removed::kGone);
  EXPECT_TRUE(machine_.exists("/mine"));
  EXPECT_FALSE(machine_.exists("/mine/podqos"));
}

TEST_P(RemovalTest, TheCgroupOfAnotherProgramKeepsTheRoot) {
  tree_.make("/podqos/kubepods/burstable");
  tree_.make("/podqos/kubepods/besteffort/other");
  EXPECT_EQ(result_of(remove_tree(machine_, "/podqos/kubepods", "/podqos")), Removed::kInUse);
  EXPECT_FALSE(machine_.exists("/podqos/kubepods/burstable"));
  EXPECT_TRUE(machine_.exists("/podqos/kubepods/besteffort/other"));
}

}  // namespace
}  // namespace podqos::cgroup
