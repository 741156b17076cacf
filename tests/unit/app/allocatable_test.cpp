// The limits of all pods together (enforceNodeAllocatable), on both cgroup versions, by both
// drivers.

#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "tests/unit/app/containers.h"
#include "tests/unit/app/fake_node.h"

namespace podqos::app {
namespace {

using containers::kWebContainer;
using ::testing::Combine;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::Values;

constexpr std::int64_t kGi = 1LL << 30U;
constexpr std::int64_t kMi = 1LL << 20U;

using Flavour = std::tuple<core::CgroupVersion, core::Driver>;

/// Of a kubelet's Guaranteed pod that requests 4Gi.
FakeContainer guaranteed_container() {
  FakeContainer made{.id = "k", .uid = "k"};
  made.annotations = {{"io.kubernetes.cri.container-type", "container"},
                      {"io.kubernetes.cri.sandbox-uid", "k"},
                      {"io.kubernetes.cri.sandbox-id", "s"}};
  made.resources.cpu_shares = 1024;
  made.resources.cpu_quota = 100'000;
  made.resources.cpu_period = 100'000;
  made.resources.memory_limit = 4 * kGi;
  made.oom_score = -997;
  return made;
}

/// A node of 16Gi and 32,768 processes.
class NodeAllocatable : public TestWithParam<Flavour> {
 protected:
  /// What the drivers call a cgroup: "/podqos", or the slice of that name.
  [[nodiscard]] std::string named(const char* directory, const char* slice) const {
    return node_.driver == core::Driver::kSystemd ? slice : directory;
  }
  void expect_limits(std::int64_t memory, std::int64_t pids = 32'768) const {
    EXPECT_EQ(node_.memory(root_), std::to_string(memory));
    EXPECT_EQ(node_.file(root_, "pids.max"), std::to_string(pids));
  }
  void use(std::int64_t bytes) { node_.tree.cgroups.at(root_).usage = bytes; }

  void start_kubelets() {
    const std::string pod = named("/kubepods/podk", "/kubepods.slice/kubepods-podk.slice");
    node_.tree.make(pod);
    const auto admission = node_.admit(kubelets_, Pid{1090}, pod + "/k");
    ASSERT_TRUE(admission) << admission.error().message;
    ASSERT_TRUE((*admission)->record.kubelets_own);
    node_.tree.start(Pid{90}, pod + "/k");
    node_.tree.end(Pid{1090});
    ASSERT_TRUE(node_.confirm(kubelets_, Pid{90}));
  }

  const FakeContainer kubelets_ = guaranteed_container();
  FakeNode node_{std::get<0>(GetParam()), std::get<1>(GetParam())};
  std::string root_ = named("/podqos/kubepods", "/podqos.slice/podqos-kubepods.slice");
};

INSTANTIATE_TEST_SUITE_P(Flavours, NodeAllocatable,
                         Combine(Values(core::CgroupVersion::kV1, core::CgroupVersion::kV2),
                                 Values(core::Driver::kCgroupfs, core::Driver::kSystemd)),
                         [](const TestParamInfo<Flavour>& flavour) {
                           return cat(
                               std::get<0>(flavour.param) == core::CgroupVersion::kV1 ? "V1" : "V2",
                               std::get<1>(flavour.param) == core::Driver::kSystemd ? "Systemd"
                                                                                    : "Cgroupfs");
                         });

TEST_P(NodeAllocatable, BoundsAllPods) {
  node_.settings.system_reserved.memory = Bytes{kGi};
  node_.settings.kube_reserved.memory = Bytes{2 * kGi};
  node_.run(kWebContainer, Pid{10});
  expect_limits(13 * kGi);
}

TEST_P(NodeAllocatable, LeavesAKubeletsPodsTheirRequests) {
  node_.run(kWebContainer, Pid{10});
  start_kubelets();
  expect_limits(12 * kGi);
  node_.stop(kubelets_, Pid{90});
  expect_limits(16 * kGi);
}

// On cgroup v2 the kernel kills for a limit below usage, on v1 it refuses it.
TEST_P(NodeAllocatable, IsNeverWrittenBelowUsage) {
  node_.run(kWebContainer, Pid{10});
  use(14 * kGi);
  start_kubelets();
  expect_limits((14 * kGi) + (16 * kMi));
  ASSERT_TRUE(node_.reconcile());
  expect_limits((14 * kGi) + (16 * kMi));
  use(2 * kGi);
  ASSERT_TRUE(node_.reconcile());
  expect_limits(12 * kGi);
}

TEST_P(NodeAllocatable, FollowsCapacityAndSettings) {
  node_.run(kWebContainer, Pid{10});
  node_.capacity.memory = Bytes{8 * kGi};
  node_.capacity.pids = 4096;
  ASSERT_TRUE(node_.reconcile());
  expect_limits(8 * kGi, 4096);
  node_.settings.system_reserved.memory = Bytes{kGi};
  ASSERT_TRUE(node_.reconcile());
  expect_limits(7 * kGi, 4096);
  node_.settings.enforce_node_allocatable = false;
  ASSERT_TRUE(node_.reconcile());
  EXPECT_EQ(node_.memory(root_), node_.tree.is_v2() ? "max" : "-1");
  EXPECT_EQ(node_.file(root_, "pids.max"), "max");
}

// An event costs no more for what the root is to reserve than for that itself.
TEST_P(NodeAllocatable, IsLeftAloneWhereOnlyItsReservationChanges) {
  node_.settings.reserve_memory = true;
  node_.run(kWebContainer, Pid{10});
  node_.tree.cgroups.at(root_).files.at("pids.max") = "7";
  node_.run({.id = "second",
             .uid = "b",
             .annotations = {{"podqos.io/requests.second", "cpu=100m,memory=64Mi"}}},
            Pid{11});
  expect_limits(16 * kGi, 7);
  ASSERT_TRUE(node_.reconcile());
  expect_limits(16 * kGi);
}

// What podqos makes outermost has the shares of 8 CPUs: above the root, or the root itself.
TEST_P(NodeAllocatable, GivesAllPodsTheirShares) {
  node_.run(kWebContainer, Pid{10});
  EXPECT_EQ(node_.shares(named("/podqos", "/podqos.slice")), node_.written(8192));
}

TEST_P(NodeAllocatable, GivesARootAtTheTopItsShares) {
  node_.settings.cgroup_root = "/";
  node_.run(kWebContainer, Pid{10});
  const std::string root = named("/kubepods", "/kubepods.slice");
  EXPECT_EQ(node_.shares(root), node_.written(8192));
  node_.tree.cgroups.at(root).files.at(node_.share_file()) = "7";
  ASSERT_TRUE(node_.reconcile());
  EXPECT_EQ(node_.shares(root), node_.written(8192));
}

// The node's operator has weighed that one.
TEST_P(NodeAllocatable, GivesNoSharesBelowAnothersCgroup) {
  node_.settings.cgroup_root = "/mine";
  const std::string mine = named("/mine", "/mine.slice");
  node_.tree.make(mine);
  node_.run(kWebContainer, Pid{10});
  const char* untouched = node_.tree.is_v2() ? "100" : "1024";
  EXPECT_EQ(node_.shares(mine), untouched);
  EXPECT_EQ(node_.shares(mine + named("/kubepods", "/mine-kubepods.slice")), untouched);
}

// Another program has changed it.
TEST_P(NodeAllocatable, IsRestored) {
  node_.run(kWebContainer, Pid{10});
  node_.tree.cgroups.at(root_).files.at("pids.max") = "7";
  ASSERT_TRUE(node_.reconcile());
  expect_limits(16 * kGi);
}

}  // namespace
}  // namespace podqos::app
