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
using containers::weight_of;
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
  [[nodiscard]] bool on_systemd() const { return driver_ == core::Driver::kSystemd; }
  [[nodiscard]] std::string memory() const {
    return node_.file(root_, node_.tree.is_v2() ? "memory.max" : "memory.limit_in_bytes");
  }
  [[nodiscard]] std::string pids() const { return node_.file(root_, "pids.max"); }
  [[nodiscard]] std::string no_memory_limit() const { return node_.tree.is_v2() ? "max" : "-1"; }
  [[nodiscard]] const char* share_file() const {
    return node_.tree.is_v2() ? "cpu.weight" : "cpu.shares";
  }
  [[nodiscard]] std::string shares_of(const std::string& path) const {
    return node_.file(path, share_file());
  }
  [[nodiscard]] std::string eight_cpus() const {
    return node_.tree.is_v2() ? weight_of(8192) : "8192";
  }
  void use(std::int64_t bytes) { node_.tree.cgroups.at(root_).usage = bytes; }

  void start_kubelets() {
    const Pid creator{1090};
    const std::string pod = on_systemd() ? "/kubepods.slice/kubepods-podk.slice" : "/kubepods/podk";
    node_.tree.make(pod);
    node_.tree.start(creator, "/");
    const auto admission = node_.admit(kubelets_, creator, pod + "/k");
    ASSERT_TRUE(admission) << admission.error().message;
    ASSERT_TRUE((*admission)->record.adopted);
    node_.tree.start(Pid{90}, pod + "/k");
    node_.tree.end(creator);
    ASSERT_TRUE(node_.confirm(kubelets_, Pid{90}));
  }
  void end_kubelets() {
    node_.tree.end(Pid{90});
    ASSERT_TRUE(node_.end(kubelets_));
  }

  const FakeContainer kubelets_ = guaranteed_container();
  core::Driver driver_ = std::get<1>(GetParam());
  FakeNode node_{std::get<0>(GetParam()), driver_};
  std::string root_ = on_systemd() ? "/podqos.slice/podqos-kubepods.slice" : "/podqos/kubepods";
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
  EXPECT_EQ(memory(), std::to_string(13 * kGi));
  EXPECT_EQ(pids(), "32768");
}

TEST_P(NodeAllocatable, LeavesAKubeletsPodsTheirRequests) {
  node_.run(kWebContainer, Pid{10});
  start_kubelets();
  EXPECT_EQ(memory(), std::to_string(12 * kGi));
  end_kubelets();
  EXPECT_EQ(memory(), std::to_string(16 * kGi));
}

// On cgroup v2 the kernel kills for a limit below usage, on v1 it refuses it.
TEST_P(NodeAllocatable, IsNeverWrittenBelowUsage) {
  node_.run(kWebContainer, Pid{10});
  use(14 * kGi);
  start_kubelets();
  EXPECT_EQ(memory(), std::to_string((14 * kGi) + (16 * kMi)));
  ASSERT_TRUE(node_.reconcile());
  EXPECT_EQ(memory(), std::to_string((14 * kGi) + (16 * kMi)));
  use(2 * kGi);
  ASSERT_TRUE(node_.reconcile());
  EXPECT_EQ(memory(), std::to_string(12 * kGi));
}

TEST_P(NodeAllocatable, FollowsCapacityAndSettings) {
  node_.run(kWebContainer, Pid{10});
  node_.capacity.memory = Bytes{8 * kGi};
  node_.capacity.pids = 4096;
  ASSERT_TRUE(node_.reconcile());
  EXPECT_EQ(memory(), std::to_string(8 * kGi));
  EXPECT_EQ(pids(), "4096");
  node_.settings.system_reserved.memory = Bytes{kGi};
  ASSERT_TRUE(node_.reconcile());
  EXPECT_EQ(memory(), std::to_string(7 * kGi));
  node_.settings.enforce_node_allocatable = false;
  ASSERT_TRUE(node_.reconcile());
  EXPECT_EQ(memory(), no_memory_limit());
  EXPECT_EQ(pids(), "max");
}

// What podqos makes outermost has the shares of 8 CPUs: above the root, or the root itself.
TEST_P(NodeAllocatable, GivesAllPodsTheirShares) {
  node_.run(kWebContainer, Pid{10});
  EXPECT_EQ(shares_of(on_systemd() ? "/podqos.slice" : "/podqos"), eight_cpus());
}

TEST_P(NodeAllocatable, GivesARootAtTheTopItsShares) {
  node_.settings.cgroup_root = "/";
  node_.run(kWebContainer, Pid{10});
  const char* root = on_systemd() ? "/kubepods.slice" : "/kubepods";
  EXPECT_EQ(shares_of(root), eight_cpus());
  node_.tree.cgroups.at(root).files.at(share_file()) = "7";
  ASSERT_TRUE(node_.reconcile());
  EXPECT_EQ(shares_of(root), eight_cpus());
}

// The node's operator has weighed that one.
TEST_P(NodeAllocatable, GivesNoSharesBelowAnothersCgroup) {
  node_.settings.cgroup_root = "/mine";
  const std::string mine = on_systemd() ? "/mine.slice" : "/mine";
  node_.tree.make(mine);
  node_.run(kWebContainer, Pid{10});
  const char* untouched = node_.tree.is_v2() ? "100" : "1024";
  EXPECT_EQ(shares_of(mine), untouched);
  EXPECT_EQ(shares_of(on_systemd() ? "/mine.slice/mine-kubepods.slice" : "/mine/kubepods"),
            untouched);
}

// Somebody else has changed it.
TEST_P(NodeAllocatable, IsRestored) {
  node_.run(kWebContainer, Pid{10});
  node_.tree.cgroups.at(root_).files.at("pids.max") = "7";
  ASSERT_TRUE(node_.reconcile());
  EXPECT_EQ(pids(), "32768");
}

}  // namespace
}  // namespace podqos::app
