#include "common/cgroup/node.h"

#include <linux/capability.h>
#include <sched.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include "common/sys/process.h"
#include "common/sys/sandbox.h"
#include "tests/unit/child_process.h"

namespace podqos::cgroup {
namespace {

TEST(NodeCapacityOf, IsMeasuredUnlessItIsPinned) {
  const auto measured = node_capacity({});
  ASSERT_TRUE(measured);
  EXPECT_GT(measured->memory, Bytes{1 << 20U});
  EXPECT_GE(measured->cpu, MilliCpu{1'000});
  EXPECT_EQ(measured->cpu.value() % 1'000, 0);
  core::Settings settings;
  settings.node_memory = Bytes{34'359'738'368};
  settings.node_cpu = MilliCpu{4'000};
  const auto pinned = node_capacity(settings);
  ASSERT_TRUE(pinned);
  EXPECT_EQ(pinned->memory, Bytes{34'359'738'368});
  EXPECT_EQ(pinned->cpu, MilliCpu{4'000});
}

TEST(OwnsHost, NotAsAnotherUserNorInAnotherUserNamespace) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  expect_in_child([] {
    ASSERT_EQ(::setresuid(1234, 1234, 1234), 0);
    EXPECT_FALSE(owns_host());
  });
  expect_in_child([] {
    if (::unshare(CLONE_NEWUSER) != 0) return;  // not every machine lets us
    EXPECT_FALSE(owns_host());
  });
}

TEST(ReachableOomScore, IsNoLowerThanOurOwnWithoutTheCapability) {
  EXPECT_EQ(reachable_oom_score(1000), 1000);
  if (sys::has_capability(CAP_SYS_RESOURCE)) {
    EXPECT_EQ(reachable_oom_score(-997), -997);
  }
  expect_in_child([] {
    // Another user has no capability; the score that it came with stays its least.
    if (::geteuid() == 0) {
      ASSERT_EQ(::setresuid(1234, 1234, 1234), 0);
    }
    if (sys::has_capability(CAP_SYS_RESOURCE)) return;
    const auto own = sys::oom_score_adj_of(Pid{::getpid()});
    ASSERT_TRUE(own);
    EXPECT_EQ(reachable_oom_score(-1000), *own);
    EXPECT_EQ(reachable_oom_score(1000), 1000);
  });
}

}  // namespace
}  // namespace podqos::cgroup
