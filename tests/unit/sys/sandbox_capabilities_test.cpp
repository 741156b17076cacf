#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <string>

#include <gtest/gtest.h>

#include "common/sys/sandbox.h"
#include "tests/unit/child_process.h"
#include "tests/unit/sys/own_status.h"

namespace podqos::sys {
namespace {

using test::own_status;

class KeepCapabilities : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string permitted = own_status("CapPrm");
    if (::geteuid() != 0 || permitted == "0000000000000000")
      GTEST_SKIP() << "needs root's capabilities";
  }
};

TEST_F(KeepCapabilities, LeavesExactlyThose) {
  const int status = run_in_child([] {
    constexpr std::array kKept{CAP_CHOWN, CAP_DAC_OVERRIDE};
    const std::string bounding = own_status("CapBnd");
    const auto kept = keep_capabilities(kKept);
    ASSERT_TRUE(kept) << kept.error().message;
    EXPECT_EQ(own_status("CapPrm"), "0000000000000003");
    EXPECT_EQ(own_status("CapEff"), "0000000000000003");
    // It only matters to what is executed, and nothing is.
    EXPECT_EQ(own_status("CapBnd"), bounding);
    EXPECT_EQ(own_status("CapInh"), "0000000000000000");
    EXPECT_EQ(own_status("CapAmb"), "0000000000000000");
  });
  EXPECT_EQ(status, 0);
}

TEST_F(KeepCapabilities, KnowsTheUpperWord) {
  if (::prctl(PR_CAPBSET_READ, CAP_AUDIT_READ, 0, 0, 0) != 1)
    GTEST_SKIP() << "CAP_AUDIT_READ is gone already";
  const int status = run_in_child([] {
    ASSERT_TRUE(keep_capabilities(std::array{CAP_AUDIT_READ}));
    EXPECT_EQ(own_status("CapEff"), "0000002000000000");
  });
  EXPECT_EQ(status, 0);
}

TEST_F(KeepCapabilities, LeavesNoneForAnEmptyList) {
  const int status = run_in_child([] {
    ASSERT_TRUE(keep_capabilities({}));
    for (const char* set : {"CapPrm", "CapEff", "CapInh", "CapAmb"}) {
      EXPECT_EQ(own_status(set), "0000000000000000") << set;
    }
    EXPECT_EQ(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), -1);
  });
  EXPECT_EQ(status, 0);
}

TEST_F(KeepCapabilities, NeverGivesBackWhatIsGone) {
  const int status = run_in_child([] {
    ASSERT_TRUE(keep_capabilities(std::array{CAP_CHOWN}));
    ASSERT_TRUE(keep_capabilities(std::array{CAP_CHOWN, CAP_SYS_ADMIN}));
    EXPECT_EQ(own_status("CapEff"), "0000000000000001");
  });
  EXPECT_EQ(status, 0);
}

TEST_F(KeepCapabilities, CanKeepEverFewer) {
  const int status = run_in_child([] {
    ASSERT_TRUE(keep_capabilities(std::array{CAP_CHOWN, CAP_KILL}));
    EXPECT_TRUE(has_capability(CAP_KILL));
    ASSERT_TRUE(keep_capabilities(std::array{CAP_CHOWN}));
    EXPECT_EQ(own_status("CapPrm"), "0000000000000001");
    EXPECT_FALSE(has_capability(CAP_KILL));
    EXPECT_TRUE(has_capability(CAP_CHOWN));
  });
  EXPECT_EQ(status, 0);
}

TEST_F(KeepCapabilities, RefusesWhatIsNoCapability) {
  for (const int number : {-1, 64, 1000}) {
    const auto refused = keep_capabilities(std::array{number});
    ASSERT_FALSE(refused) << number;
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument) << number;
  }
}

}  // namespace
}  // namespace podqos::sys
