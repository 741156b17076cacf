#include "common/core/value_table.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/layouts.h"

namespace podqos::core {
namespace {

using layouts::kV1;
using layouts::kV2;

std::vector<std::string_view> names_on(CgroupVersion version) {
  std::vector<std::string_view> names;
  for (const ValueRow& row : value_table()) {
    if (!row.on(version).name.empty()) names.push_back(row.on(version).name);
  }
  return names;
}

TEST(ValueTable, HasEachFileOnce) {
  for (const auto version : {kV1, kV2}) {
    auto names = names_on(version);
    std::ranges::sort(names);
    EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
  }
}

TEST(ValueTable, SaysWhatUnlimitedIs) {
  for (const ValueRow& row : value_table()) {
    for (const ValueFile* file : {&row.v1, &row.v2}) {
      const bool written = file->number != nullptr && !file->name.empty();
      EXPECT_TRUE(!written || !file->unset.empty()) << file->name;
    }
  }
}

TEST(FileOf, NamesTheFileOfEachVersion) {
  EXPECT_EQ(file_of(Value::kCpuShares, kV1), "cpu.shares");
  EXPECT_EQ(file_of(Value::kCpuShares, kV2), "cpu.weight");
  EXPECT_EQ(file_of(Value::kCpuPeriod, kV1), "cpu.cfs_period_us");
  EXPECT_EQ(file_of(Value::kCpuQuota, kV1), "cpu.cfs_quota_us");
  EXPECT_EQ(file_of(Value::kCpuQuota, kV2), "cpu.max");
  EXPECT_EQ(file_of(Value::kMemoryLimit, kV1), "memory.limit_in_bytes");
  EXPECT_EQ(file_of(Value::kMemoryLimit, kV2), "memory.max");
  EXPECT_EQ(file_of(Value::kSwapLimit, kV2), "memory.swap.max");
  EXPECT_EQ(file_of(Value::kPidsLimit, kV1), "pids.max");
  EXPECT_EQ(file_of(Value::kPidsLimit, kV2), "pids.max");
}

TEST(RowWith, FindsAFileOfOneVersionOnly) {
  ASSERT_NE(row_with("cpu.weight", kV2), nullptr);
  EXPECT_EQ(row_with("cpu.weight", kV2)->value, Value::kCpuShares);
  EXPECT_EQ(row_with("cpu.weight", kV1), nullptr);
  EXPECT_EQ(row_with("cpu.weigh", kV2), nullptr);
  // The period has no file of its own on v2.
  EXPECT_EQ(row_with("", kV2), nullptr);
}

TEST(IsDropIn, KnowsWhereSystemdKeepsTheProperties) {
  for (const std::string_view name :
       {"50-CPUWeight.conf", "50-CPUShares.conf", "50-CPUQuota.conf", "50-CPUQuotaPeriodSec.conf",
        "50-MemoryMax.conf", "50-MemoryLimit.conf", "50-MemoryHigh.conf", "50-MemoryLow.conf",
        "50-MemoryMin.conf", "50-MemorySwapMax.conf", "50-TasksMax.conf", "50-IOWeight.conf"})
    EXPECT_TRUE(is_drop_in(name)) << name;
  EXPECT_FALSE(is_drop_in("50-CPUAccounting.conf"));
  EXPECT_FALSE(is_drop_in("admin.conf"));
  EXPECT_FALSE(is_drop_in(""));
}

struct IoWeightCase {
  std::int64_t weight;
  const char* io;     ///< io.weight
  const char* bfq;    ///< io.bfq.weight and blkio.bfq.weight
  const char* blkio;  ///< blkio.weight
};

class IoWeight : public testing::TestWithParam<IoWeightCase> {};

// What systemd writes for IOWeight=: src/basic/cgroup-util.h BFQ_WEIGHT, src/core/cgroup.c
// cgroup_weight_io_to_blkio.
TEST_P(IoWeight, IsWrittenInTheRangeOfEachFile) {
  const IoWeightCase& each = GetParam();
  const auto content = [&](std::string_view file, CgroupVersion version) {
    const ValueRow* row = row_with(file, version);
    return row == nullptr
               ? "no such file"
               : content_for(row->on(version), {.io_weight = each.weight}, WeightFormula::kLog);
  };
  EXPECT_EQ(content("io.weight", kV2), each.io);
  EXPECT_EQ(content("io.bfq.weight", kV2), each.bfq);
  EXPECT_EQ(content("blkio.bfq.weight", kV1), each.bfq);
  EXPECT_EQ(content("blkio.weight", kV1), each.blkio);
}

INSTANTIATE_TEST_SUITE_P(
    Weights, IoWeight,
    testing::Values(IoWeightCase{1, "1", "1", "10"}, IoWeightCase{10, "10", "10", "50"},
                    IoWeightCase{50, "50", "50", "250"}, IoWeightCase{100, "100", "100", "500"},
                    IoWeightCase{200, "200", "109", "1000"},
                    IoWeightCase{1000, "1000", "181", "1000"},
                    IoWeightCase{10'000, "10000", "1000", "1000"}),
    [](const auto& case_info) { return "Of" + std::to_string(case_info.param.weight); });

struct HugePageCase {
  const char* name;
  const char* file;
  const char* label;
};

class HugePageLabelIn : public testing::TestWithParam<HugePageCase> {};

TEST_P(HugePageLabelIn, IsTheSizeOfALimit) {
  EXPECT_EQ(hugepage_label_in(GetParam().file), GetParam().label);
}

INSTANTIATE_TEST_SUITE_P(Files, HugePageLabelIn,
                         testing::Values(HugePageCase{"v2", "hugetlb.2MB.max", "2MB"},
                                         HugePageCase{"v2_reserved", "hugetlb.2MB.rsvd.max", "2MB"},
                                         HugePageCase{"v1", "hugetlb.1GB.limit_in_bytes", "1GB"},
                                         HugePageCase{"v1_reserved",
                                                      "hugetlb.1GB.rsvd.limit_in_bytes", "1GB"},
                                         HugePageCase{"usage", "hugetlb.2MB.current", ""},
                                         HugePageCase{"no_limit", "hugetlb.2MB", ""},
                                         HugePageCase{"other", "memory.max", ""}),
                         [](const auto& case_info) { return std::string{case_info.param.name}; });

TEST(HugePageFile, IsNamedAsTheKernelDoes) {
  EXPECT_EQ(hugepage_file("2MB", kV1), "hugetlb.2MB.limit_in_bytes");
  EXPECT_EQ(hugepage_file("2MB", kV2), "hugetlb.2MB.max");
  EXPECT_EQ(hugepage_file("1GB", kV1, HugePageUse::kReserved), "hugetlb.1GB.rsvd.limit_in_bytes");
  EXPECT_EQ(hugepage_file("1GB", kV2, HugePageUse::kReserved), "hugetlb.1GB.rsvd.max");
}

}  // namespace
}  // namespace podqos::core
