#include <string>

#include <gtest/gtest.h>

#include "tests/unit/cgroup/fake_machine.h"

namespace podqos::cgroup {
namespace {

Status allow(const std::string& /*change*/) {
  return {};
}

core::WriteFile weight_of(const std::string& path) {
  return {.path = path, .controller = core::Controller::kCpu, .file = "cpu.weight", .value = "39"};
}
core::WriteFile quota_of(const std::string& path) {
  return {.path = path,
          .controller = core::Controller::kCpu,
          .file = "cpu.cfs_quota_us",
          .value = "10000"};
}

TEST(Repeat, EndsWithTheFirstAttemptThatIsEnough) {
  FakeTree tree{core::CgroupVersion::kV2};
  FakeMachine machine{tree, allow};
  int waits = 0;
  tree.on_wait = [&] { return ++waits < 10; };
  int attempts = 0;
  const auto done = machine.retry_until_done([&]() -> Result<bool> { return ++attempts == 3; });
  ASSERT_TRUE(done);
  EXPECT_TRUE(*done);
  EXPECT_EQ(attempts, 3);
  EXPECT_EQ(waits, 2);
}

TEST(Repeat, EndsWithAnError) {
  FakeTree tree{core::CgroupVersion::kV2};
  FakeMachine machine{tree, allow};
  tree.on_wait = [] { return true; };
  const auto done = machine.retry_until_done(
      []() -> Result<bool> { return fail(ErrorCode::kPermission, "refused"); });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "refused");
}

TEST(ExecuteWithRetries, DoesNotWaitForARefusalThatStays) {
  FakeTree tree{core::CgroupVersion::kV2};
  FakeMachine machine{tree, allow};
  tree.on_wait = []() -> bool {
    ADD_FAILURE() << "waited";
    return false;
  };
  const auto report = machine.execute_with_quota({weight_of("/pod")});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kNotFound);
}

/// A v1 tree with a pod whose removed container's quota the kernel still counts.
class RemovedQuota : public ::testing::Test {
 protected:
  RemovedQuota() {
    tree_.make("/pod/removed");
    tree_.cgroups.at("/pod/removed").files.at("cpu.cfs_quota_us") = "50000";
  }
  FakeTree tree_{core::CgroupVersion::kV1};
  FakeMachine machine_{tree_, allow};
};

TEST_F(RemovedQuota, IsWaitedFor) {
  tree_.on_wait = [&] { return tree_.cgroups.erase("/pod/removed") == 1; };
  const auto report = machine_.execute_with_quota({quota_of("/pod")});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(tree_.cgroups.at("/pod").files.at("cpu.cfs_quota_us"), "10000");
}

TEST_F(RemovedQuota, IsBusyIfItLastsLonger) {
  const auto report = machine_.execute_with_quota({quota_of("/pod")});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kBusy);
  EXPECT_EQ(report.error().message, "/pod/removed: quota exceeds that of /pod");
}

}  // namespace
}  // namespace podqos::cgroup
