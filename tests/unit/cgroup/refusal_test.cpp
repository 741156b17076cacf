#include "common/cgroup/refusal.h"

#include <cerrno>
#include <string>

#include <gtest/gtest.h>

namespace podqos::cgroup {
namespace {

struct RefusalCase {
  const char* name;
  const char* file;
  int err;
  Error want;
};

class Refusal : public ::testing::TestWithParam<RefusalCase> {};

TEST_P(Refusal, NamesPathValueFileCauseAndRemedy) {
  const core::WriteFile step{.path = "/kubepods/pod42",
                             .controller = core::Controller::kCpu,
                             .file = GetParam().file,
                             .value = "150000",
                             .reason = "",
                             .on_refusal = core::OnRefusal::kFail};
  EXPECT_EQ(refusal(step, GetParam().err), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(
    Table, Refusal,
    ::testing::Values(
        RefusalCase{"QuotaAboveTheParents",
                    "cpu.cfs_quota_us",
                    EINVAL,
                    {ErrorCode::kInvalidArgument,
                     "/kubepods/pod42: write \"150000\" to cpu.cfs_quota_us: Invalid argument "
                     "(the quota exceeds the parent's, is below a child's, or is under 1 ms)"}},
        RefusalCase{"ReadOnly",
                    "cpu.max",
                    EROFS,
                    {ErrorCode::kPermission,
                     "/kubepods/pod42: write \"150000\" to cpu.max: Read-only file system "
                     "(the cgroup file system is mounted read-only: remount it read-write)"}},
        RefusalCase{"NoController",
                    "cpu.max",
                    ENOENT,
                    {ErrorCode::kNotFound,
                     "/kubepods/pod42: write \"150000\" to cpu.max: No such file or directory "
                     "(the cpu controller is not enabled here, or the kernel lacks this file: on "
                     "cgroup v2 write +cpu "
                     "to the parent's cgroup.subtree_control)"}},
        RefusalCase{
            "NoRemedyKnown",
            "cpu.max",
            ERANGE,
            {ErrorCode::kInvalidArgument,
             "/kubepods/pod42: write \"150000\" to cpu.max: Numerical result out of range"}}),
    [](const auto& c) { return c.param.name; });

}  // namespace
}  // namespace podqos::cgroup
