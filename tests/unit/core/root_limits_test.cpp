#include <gtest/gtest.h>

#include "common/core/events/root.h"
#include "common/core/events/tier_write.h"
#include "tests/unit/core/byte_units.h"

namespace podqos::core {
namespace {

using byte_units::kGi;

/// A node of 10Gi, 2Gi of them reserved, on which a kubelet's pods request 1Gi.
class RootLimits : public ::testing::Test {
 protected:
  RootLimits() {
    settings_.system_reserved.memory = Bytes{kGi};
    settings_.kube_reserved.memory = Bytes{kGi};
    tiers_.sums.adopted = {.pods = 1, .cpu = {}, .memory = Bytes{kGi}};
    tiers_.trees = {{.kubepods = "/podqos/kubepods"}};
  }

  Settings settings_;
  NodeCapacity capacity_{.memory = Bytes{10 * kGi}, .cpu = MilliCpu{4000}, .pids = 32'768};
  TiersRecord tiers_;
};

TEST_F(RootLimits, AreWhatIsAllocatableLessWhatOthersRequest) {
  EXPECT_EQ(root_limits(tiers_, tiers_.trees[0], settings_, capacity_),
            (CgroupValues{.memory_limit = Bytes{7 * kGi}, .pids_limit = 32'768}));
}

// The pods of another driver lie outside the tree as a kubelet's do.
TEST_F(RootLimits, LeaveTheOtherTreeItsRequests) {
  tiers_.sums.burstable = {.pods = 2, .cpu = {}, .memory = Bytes{3 * kGi}};
  tiers_.trees[0].sums.burstable = {.pods = 1, .cpu = {}, .memory = Bytes{kGi}};
  EXPECT_EQ(root_limits(tiers_, tiers_.trees[0], settings_, capacity_).memory_limit,
            Bytes{5 * kGi});
}

TEST_F(RootLimits, AreNeverBelowZero) {
  tiers_.sums.adopted.memory = Bytes{20 * kGi};
  EXPECT_EQ(root_limits(tiers_, tiers_.trees[0], settings_, capacity_).memory_limit, Bytes{0});
}

TEST_F(RootLimits, AreAbsentWhereNothingIsEnforcedOrKnown) {
  EXPECT_EQ(root_limits(tiers_, tiers_.trees[0], settings_, {.memory = Bytes{kGi}, .cpu = {}}),
            CgroupValues{});
  settings_.enforce_node_allocatable = false;
  EXPECT_EQ(root_limits(tiers_, tiers_.trees[0], settings_, capacity_), CgroupValues{});
}

}  // namespace
}  // namespace podqos::core
