#include "common/cgroup/value.h"

#include <unistd.h>

#include <gtest/gtest.h>

namespace podqos::cgroup {
namespace {

struct ValueCase {
  const char* name;
  const char* file;
  const char* have;
  const char* want;
  bool holds;
};

class HoldsValue : public ::testing::TestWithParam<ValueCase> {};

TEST_P(HoldsValue, KnowsHowTheKernelShowsIt) {
  if (::sysconf(_SC_PAGESIZE) != 4096) GTEST_SKIP() << "written for pages of 4 KiB";
  const ValueCase& c = GetParam();
  EXPECT_EQ(holds_value(c.file, c.have, c.want), c.holds);
}

INSTANTIATE_TEST_SUITE_P(
    Table, HoldsValue,
    ::testing::Values(
        ValueCase{"Equal", "cpu.weight", "39", "39", true},
        ValueCase{"Different", "cpu.weight", "39", "40", false},
        ValueCase{"MemoryRoundsDown", "memory.max", "1048576", "1048577", true},
        ValueCase{"MemoryRoundsNotUp", "memory.max", "1052672", "1048577", false},
        ValueCase{"MemoryMax", "memory.max", "max", "max", true},
        ValueCase{"MemoryMaxAgainstNumber", "memory.max", "max", "1048576", false},
        ValueCase{"MemoryHuge", "memory.max", "max", "9223372036854775807", true},
        ValueCase{"MemoryV1Unlimited", "memory.limit_in_bytes", "9223372036854771712", "-1", true},
        ValueCase{"MemoryV1Limited", "memory.limit_in_bytes", "1048576", "-1", false},
        ValueCase{"MemorySwapMax", "memory.swap.max", "4096", "5000", true},
        ValueCase{"MemoryFlagIsExact", "memory.oom.group", "0", "1", false},
        ValueCase{"MemorySwappinessIsExact", "memory.swappiness", "60", "10", false},
        ValueCase{"HugePagesRoundDown", "hugetlb.2MB.max", "2097152", "3000000", true},
        ValueCase{"HugePagesOfTheirSize", "hugetlb.1GB.max", "0", "3000000", true},
        ValueCase{"HugePagesV1Unlimited", "hugetlb.2MB.limit_in_bytes", "9223372036852678656", "-1",
                  true},
        ValueCase{"HugePagesV1UnlimitedGigabyte", "hugetlb.1GB.limit_in_bytes",
                  "9223372035781033984", "-1", true},
        ValueCase{"HugePagesReserved", "hugetlb.2MB.rsvd.max", "2097152", "2097153", true},
        ValueCase{"HugePagesOfUnknownSize", "hugetlb.x.max", "0", "1", false},
        ValueCase{"CpuMaxWithPeriod", "cpu.max", "max 100000", "max", true},
        ValueCase{"CpuMaxOtherPeriod", "cpu.max", "max 50000", "max 100000", false},
        ValueCase{"CpuMaxQuota", "cpu.max", "20000 100000", "20000 100000", true},
        ValueCase{"CpuMaxQuotaLonger", "cpu.max", "200000 100000", "20000", false},
        ValueCase{"CpuMaxEmpty", "cpu.max", "max 100000", "", false},
        ValueCase{"IoWeight", "io.weight", "default 200", "200", true},
        ValueCase{"IoWeightWithDevices", "io.bfq.weight", "default 200\n8:0 50", "200", true},
        ValueCase{"IoWeightOther", "io.weight", "default 2000", "200", false},
        ValueCase{"IoWeightOfADevice", "io.weight", "default 100\n8:0 200", "200", false},
        // Kernels before 5.4 show the number alone.
        ValueCase{"IoWeightAlone", "io.bfq.weight", "200", "200", true},
        ValueCase{"QuotaUnlimitedIsExact", "cpu.cfs_quota_us", "-1", "-1", true},
        ValueCase{"Garbage", "memory.max", "garbage", "1", false},
        ValueCase{"GarbageWanted", "memory.max", "0", "-5", false}),
    [](const auto& c) { return c.param.name; });

}  // namespace
}  // namespace podqos::cgroup
