#include <string>

#include <gtest/gtest.h>

#include "tests/unit/cgroup/fake_machine.h"

namespace podqos::cgroup {
namespace {

/// A machine with a pod whose removed container's quota the kernel still counts.
class Retry : public ::testing::Test {
 protected:
  Retry() {
    tree_.make("/pod/removed");
    tree_.cgroups.at("/pod/removed").files.at("cpu.cfs_quota_us") = "50000";
  }
  Result<Report> write_quota(const std::string& path) {
    return machine_.execute_with_quota({core::WriteFile{.path = path,
                                                        .controller = core::Controller::kCpu,
                                                        .file = "cpu.cfs_quota_us",
                                                        .value = "10000"}});
  }

  FakeTree tree_{core::CgroupVersion::kV1};
  FakeMachine machine_{tree_, [](const std::string&) { return Status{}; }};
};

TEST_F(Retry, EndsWithTheFirstAttemptThatIsEnough) {
  int waits = 0;
  tree_.on_wait = [&] { return ++waits < 10; };
  int attempts = 0;
  EXPECT_EQ(machine_.retry_until_done([&]() -> Result<bool> { return ++attempts == 3; }), true);
  EXPECT_EQ(attempts, 3);
  EXPECT_EQ(waits, 2);
}

TEST_F(Retry, EndsWithAnError) {
  tree_.on_wait = [] { return true; };
  const auto done = machine_.retry_until_done(
      []() -> Result<bool> { return fail(ErrorCode::kPermission, "refused"); });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "refused");
}

TEST_F(Retry, DoesNotWaitForARefusalThatStays) {
  tree_.on_wait = []() -> bool {
    ADD_FAILURE() << "waited";
    return false;
  };
  const auto report = write_quota("/gone");
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kNotFound);
}

TEST_F(Retry, WaitsForTheQuotaOfARemovedChildWhichIsBusyIfItStays) {
  const auto refused = write_quota("/pod");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), (Error{ErrorCode::kBusy, "/pod/removed: quota exceeds that of /pod"}));
  tree_.on_wait = [&] { return tree_.cgroups.erase("/pod/removed") == 1; };
  const auto report = write_quota("/pod");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(tree_.cgroups.at("/pod").files.at("cpu.cfs_quota_us"), "10000");
}

}  // namespace
}  // namespace podqos::cgroup
