#include "common/cgroup/value.h"

#include <unistd.h>

#include <cerrno>
#include <string>

#include <gtest/gtest.h>

#include "common/base/text.h"

namespace podqos::cgroup {
namespace {

TEST(HoldsValue, KnowsHowTheKernelShowsIt) {
  if (::sysconf(_SC_PAGESIZE) != 4096) GTEST_SKIP() << "written for pages of 4 KiB";
  struct Case {
    const char* file;
    const char* have;
    const char* want;
    bool holds;
  };
  for (const auto& [file, have, want, holds] :
       {Case{"cpu.weight", "39", "39", true}, Case{"cpu.weight", "39", "40", false},
        // Of an idle cgroup, which takes none: kernel/sched/core.c cpu_weight_read_u64(),
        // Linux 6.1.
        Case{"cpu.weight", "0", "1", true}, Case{"cpu.weight", "0", "2", false},
        Case{"memory.max", "1048576", "1048577", true},
        Case{"memory.max", "1052672", "1048577", false}, Case{"memory.max", "max", "max", true},
        Case{"memory.max", "max", "1048576", false},
        Case{"memory.max", "max", "9223372036854775807", true},
        Case{"memory.limit_in_bytes", "9223372036854771712", "-1", true},
        Case{"memory.limit_in_bytes", "1048576", "-1", false},
        Case{"memory.swap.max", "4096", "5000", true}, Case{"memory.oom.group", "0", "1", false},
        Case{"memory.swappiness", "60", "10", false},
        Case{"hugetlb.2MB.max", "2097152", "3000000", true},
        Case{"hugetlb.1GB.max", "0", "3000000", true},
        Case{"hugetlb.2MB.limit_in_bytes", "9223372036852678656", "-1", true},
        Case{"hugetlb.1GB.limit_in_bytes", "9223372035781033984", "-1", true},
        Case{"hugetlb.2MB.rsvd.max", "2097152", "2097153", true},
        Case{"hugetlb.x.max", "0", "1", false}, Case{"cpu.max", "max 100000", "max", true},
        Case{"cpu.max", "max 50000", "max 100000", false},
        Case{"cpu.max", "20000 100000", "20000 100000", true},
        Case{"cpu.max", "200000 100000", "20000", false}, Case{"cpu.max", "max 100000", "", false},
        Case{"io.weight", "default 200", "200", true},
        Case{"io.bfq.weight", "default 200\n8:0 50", "200", true},
        Case{"io.weight", "default 2000", "200", false},
        Case{"io.weight", "default 100\n8:0 200", "200", false},
        // Kernels before 5.4 show the number alone.
        Case{"io.bfq.weight", "200", "200", true}, Case{"cpu.cfs_quota_us", "-1", "-1", true},
        Case{"memory.max", "garbage", "1", false}, Case{"memory.max", "0", "-5", false}}) {
    EXPECT_EQ(holds_value(file, have, want), holds) << file << ": " << have << " for " << want;
  }
}

TEST(MakesRoom, ForALowerLimitOfCgroupV1) {
  struct Case {
    const char* file;
    const char* have;
    const char* want;
    bool makes;
  };
  for (const auto& [file, have, want, makes] :
       {Case{"memory.limit_in_bytes", "2097152", "1048576", true},
        Case{"memory.limit_in_bytes", "1048576", "2097152", false},
        Case{"memory.limit_in_bytes", "1048576", "-1", false},
        Case{"memory.limit_in_bytes", "9223372036854771712", "1048576", false},
        Case{"memory.limit_in_bytes", "garbage", "1048576", false},
        Case{"memory.memsw.limit_in_bytes", "2097152", "1048576", false},
        Case{"memory.max", "2097152", "1048576", false}}) {
    EXPECT_EQ(makes_room(file, have, want), makes) << file << ": " << have << " for " << want;
  }
}

TEST(Refusal, NamesPathValueFileCauseAndRemedy) {
  struct Case {
    const char* file;
    int err;
    ErrorCode code;
    const char* cause;
  };
  for (const auto& [file, err, code, cause] :
       {Case{"cpu.cfs_quota_us", EINVAL, ErrorCode::kInvalidArgument,
             "Invalid argument (the quota exceeds the parent's, is below a child's, or is under "
             "1 ms)"},
        Case{"cpu.max", EROFS, ErrorCode::kPermission,
             "Read-only file system (the cgroup file system is mounted read-only: remount it "
             "read-write)"},
        Case{"cpu.max", ENOENT, ErrorCode::kNotFound,
             "No such file or directory (the cpu controller is not enabled here, or the kernel "
             "lacks this file: on cgroup v2 write +cpu to the parent's cgroup.subtree_control)"},
        Case{"/sys/fs/cgroup/kubepods/pod42/cgroup.procs", EBUSY, ErrorCode::kBusy,
             "Device or resource busy (it enables controllers for its children, so it cannot "
             "contain processes)"},
        Case{"cgroup.procs", ENOENT, ErrorCode::kNotFound,
             "No such file or directory (the cgroup was removed meanwhile)"},
        Case{"cpu.max", ERANGE, ErrorCode::kInvalidArgument, "Numerical result out of range"}}) {
    const core::WriteFile step{.path = "/kubepods/pod42", .file = file, .value = "150000"};
    EXPECT_EQ(refusal(step, err),
              (Error{code, cat("/kubepods/pod42: write \"150000\" to ", file, ": ", cause)}));
  }
}

}  // namespace
}  // namespace podqos::cgroup
