#include "common/core/cgroups/value_table.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/text.h"
#include "common/core/cgroups/layout.h"
#include "tests/unit/core/layouts.h"

namespace podqos::core {
namespace {

using layouts::kV1;
using layouts::kV2;
using layouts::layout_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

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

// What systemd writes for IOWeight=: src/basic/cgroup-util.h BFQ_WEIGHT, src/core/cgroup.c
// cgroup_weight_io_to_blkio.
TEST(IoWeight, IsWrittenInTheRangeOfEachFile) {
  struct IoWeightCase {
    std::int64_t weight;
    const char* bfq;    ///< io.bfq.weight and blkio.bfq.weight
    const char* blkio;  ///< blkio.weight
  };
  for (const auto& each : std::vector<IoWeightCase>{{1, "1", "10"},
                                                    {10, "10", "50"},
                                                    {50, "50", "250"},
                                                    {100, "100", "500"},
                                                    {200, "109", "1000"},
                                                    {1000, "181", "1000"},
                                                    {10'000, "1000", "1000"}}) {
    const auto content = [&](std::string_view file, CgroupVersion version) {
      const ValueRow* row = row_with(file, version);
      return row == nullptr
                 ? "no such file"
                 : content_for(row->on(version), {.io_weight = each.weight}, WeightFormula::kLog);
    };
    EXPECT_EQ(content("io.weight", kV2), std::to_string(each.weight));
    EXPECT_EQ(content("io.bfq.weight", kV2), each.bfq);
    EXPECT_EQ(content("blkio.bfq.weight", kV1), each.bfq);
    EXPECT_EQ(content("blkio.weight", kV1), each.blkio);
  }
}

TEST(HugePageLabelIn, IsTheSizeOfALimit) {
  struct HugePageCase {
    const char* name;
    const char* file;
    const char* label;
  };
  for (const auto& row :
       std::vector<HugePageCase>{{"v2", "hugetlb.2MB.max", "2MB"},
                                 {"v2_reserved", "hugetlb.2MB.rsvd.max", "2MB"},
                                 {"v1", "hugetlb.1GB.limit_in_bytes", "1GB"},
                                 {"v1_reserved", "hugetlb.1GB.rsvd.limit_in_bytes", "1GB"},
                                 {"usage", "hugetlb.2MB.current", ""},
                                 {"no_limit", "hugetlb.2MB", ""},
                                 {"other", "memory.max", ""}}) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(hugepage_label_in(row.file), row.label);
  }
}

const CgroupLayout kNoHugetlb{.cpu = kV2, .memory = kV2, .pids = kV2};
constexpr std::string_view kPath = "/kubepods/burstable/pod42";

CgroupValues full_values() {
  return {.cpu_shares = CpuShares{1024},
          .cpu_quota = Micros{150'000},
          .cpu_period = Micros{100'000},
          .memory_limit = Bytes{1'073'741'824},
          .hugepages = {{"2MB", Bytes{4'194'304}}},
          .pids_limit = 512,
          .unified = {{"memory.low", "536870912"}}};
}

Plan lower(const CgroupValues& values, const CgroupLayout& layout,
           WeightFormula formula = WeightFormula::kLog) {
  return lower_values(std::string{kPath}, values, layout, formula, "pod 42");
}

/// "file = value" of each write, in order.
std::vector<std::string> writes(const Plan& plan) {
  std::vector<std::string> lines;
  for (const Step& step : plan) {
    const auto& write = std::get<WriteFile>(step);
    lines.push_back(write.file + " = " + write.value);
  }
  return lines;
}

OnRefusal refusal_of(const Plan& plan, std::string_view file) {
  for (const Step& step : plan) {
    const auto& write = std::get<WriteFile>(step);
    if (write.file == file) return write.on_refusal;
  }
  ADD_FAILURE() << "no step writes " << file;
  return OnRefusal::kFail;
}

TEST(LowerValues, WritesTheFilesOfCgroupV1) {
  EXPECT_EQ(render(lower(full_values(), layout_of(CgroupVersion::kV1))),
            "write  /kubepods/burstable/pod42/cpu.shares = 1024  # pod 42\n"
            "write  /kubepods/burstable/pod42/cpu.cfs_period_us = 100000  # pod 42\n"
            "write  /kubepods/burstable/pod42/cpu.cfs_quota_us = 150000  # pod 42\n"
            "write  /kubepods/burstable/pod42/hugetlb.1GB.limit_in_bytes = 0  # pod 42\n"
            "write  /kubepods/burstable/pod42/hugetlb.1GB.rsvd.limit_in_bytes = 0  # pod 42\n"
            "write  /kubepods/burstable/pod42/hugetlb.2MB.limit_in_bytes = 4194304  # pod 42\n"
            "write  /kubepods/burstable/pod42/hugetlb.2MB.rsvd.limit_in_bytes = 4194304  # pod 42\n"
            "write  /kubepods/burstable/pod42/pids.max = 512  # pod 42\n"
            "write  /kubepods/burstable/pod42/memory.limit_in_bytes = 1073741824  # pod 42\n");
}

TEST(LowerValues, WritesTheFilesOfCgroupV2) {
  EXPECT_EQ(render(lower(full_values(), layout_of(CgroupVersion::kV2))),
            "write  /kubepods/burstable/pod42/cpu.weight = 100  # pod 42\n"
            "write  /kubepods/burstable/pod42/cpu.max = 150000 100000  # pod 42\n"
            "write  /kubepods/burstable/pod42/hugetlb.1GB.max = 0  # pod 42\n"
            "write  /kubepods/burstable/pod42/hugetlb.1GB.rsvd.max = 0  # pod 42\n"
            "write  /kubepods/burstable/pod42/hugetlb.2MB.max = 4194304  # pod 42\n"
            "write  /kubepods/burstable/pod42/hugetlb.2MB.rsvd.max = 4194304  # pod 42\n"
            "write  /kubepods/burstable/pod42/pids.max = 512  # pod 42\n"
            "write  /kubepods/burstable/pod42/memory.max = 1073741824  # pod 42\n"
            "write  /kubepods/burstable/pod42/memory.low = 536870912  # pod 42\n");
}

TEST(LowerValues, MixesVersionsOnAHybridHost) {
  const CgroupLayout hybrid{.cpu = kV1, .hugetlb = kV2, .hugepage_labels = {"1GB"}};
  EXPECT_THAT(
      writes(lower(full_values(), hybrid)),
      ElementsAre("cpu.shares = 1024", "cpu.cfs_period_us = 100000", "cpu.cfs_quota_us = 150000",
                  "hugetlb.1GB.max = 0", "hugetlb.1GB.rsvd.max = 0", "hugetlb.2MB.max = 4194304",
                  "hugetlb.2MB.rsvd.max = 4194304"));
}

TEST(LowerValues, LeavesOutControllersThatTheMachineLacks) {
  CgroupLayout layout = layout_of(CgroupVersion::kV2);
  layout.hugetlb = std::nullopt;
  layout.memory = std::nullopt;
  EXPECT_THAT(writes(lower(full_values(), layout)),
              ElementsAre("cpu.weight = 100", "cpu.max = 150000 100000", "pids.max = 512"));
  EXPECT_THAT(lower(full_values(), {}), IsEmpty());
}

TEST(LowerValues, WritesNothingThatIsNotSet) {
  CgroupLayout layout = layout_of(CgroupVersion::kV2);
  layout.hugepage_labels.clear();
  EXPECT_THAT(lower({}, layout), IsEmpty());
  EXPECT_THAT(lower({.memory_limit = Bytes{0}}, layout), IsEmpty());
}

TEST(LowerValues, NamesTheControllerOfEachFile) {
  const Plan plan = lower(full_values(), layout_of(CgroupVersion::kV2));
  std::vector<Controller> controllers;
  for (const Step& step : plan)
    controllers.push_back(std::get<WriteFile>(step).controller);
  EXPECT_THAT(controllers,
              ElementsAre(Controller::kCpu, Controller::kCpu, Controller::kHugetlb,
                          Controller::kHugetlb, Controller::kHugetlb, Controller::kHugetlb,
                          Controller::kPids, Controller::kMemory, Controller::kMemory));
}

TEST(LowerValues, RetriesDependentCpuWritesOnV1Only) {
  const Plan v1 = lower(full_values(), layout_of(CgroupVersion::kV1));
  EXPECT_EQ(refusal_of(v1, "cpu.shares"), OnRefusal::kFail);
  EXPECT_EQ(refusal_of(v1, "cpu.cfs_period_us"), OnRefusal::kRetryAfterPlan);
  EXPECT_EQ(refusal_of(v1, "cpu.cfs_quota_us"), OnRefusal::kRetryAfterPlan);
  const Plan v2 = lower(full_values(), layout_of(CgroupVersion::kV2));
  EXPECT_EQ(refusal_of(v2, "cpu.max"), OnRefusal::kFail);
  EXPECT_EQ(refusal_of(v2, "memory.max"), OnRefusal::kFail);
}

// kernel/sched/core.c tg_set_cfs_bandwidth: no quota below the burst, which is written after it.
TEST(LowerValues, RetriesAQuotaBesideABurst) {
  CgroupValues values = full_values();
  values.cpu_burst = Micros{1'000};
  const Plan plan = lower(values, layout_of(CgroupVersion::kV2));
  EXPECT_EQ(refusal_of(plan, "cpu.max"), OnRefusal::kRetryAfterPlan);
  EXPECT_EQ(refusal_of(plan, "cpu.weight"), OnRefusal::kFail);
}

// Documentation/admin-guide/cgroup-v1/hugetlb.rst, cgroup-v2.rst.
TEST(LowerValues, SpellsUnlimitedHugePagesAsTheKernelDoes) {
  const CgroupValues values{.hugepages = {{"2MB", Bytes{-1}}}};
  EXPECT_THAT(
      writes(lower(values, {.hugetlb = CgroupVersion::kV1, .hugepage_labels = {"2MB"}})),
      ElementsAre("hugetlb.2MB.limit_in_bytes = -1", "hugetlb.2MB.rsvd.limit_in_bytes = -1"));
  EXPECT_THAT(writes(lower(values, {.hugetlb = CgroupVersion::kV2, .hugepage_labels = {"2MB"}})),
              ElementsAre("hugetlb.2MB.max = max", "hugetlb.2MB.rsvd.max = max"));
}

TEST(LowerValues, ToleratesHugePageFilesThatMayBeMissing) {
  CgroupValues values = full_values();
  values.hugepages["64KB"] = Bytes{65'536};
  const Plan plan = lower(values, layout_of(CgroupVersion::kV2));
  EXPECT_EQ(refusal_of(plan, "hugetlb.2MB.max"), OnRefusal::kFail);
  EXPECT_EQ(refusal_of(plan, "hugetlb.2MB.rsvd.max"), OnRefusal::kIgnore);
  EXPECT_EQ(refusal_of(plan, "hugetlb.64KB.max"), OnRefusal::kIgnore);
}

TEST(LowerValues, SpellsUnlimitedAsTheKernelDoes) {
  CgroupLayout v1 = layout_of(CgroupVersion::kV1);
  v1.hugepage_labels.clear();
  CgroupLayout v2 = layout_of(CgroupVersion::kV2);
  v2.hugepage_labels.clear();
  const CgroupValues values{.cpu_quota = Micros{-1},
                            .cpu_period = Micros{50'000},
                            .memory_limit = Bytes{-1},
                            .pids_limit = -1};
  EXPECT_THAT(writes(lower(values, v1)),
              ElementsAre("cpu.cfs_period_us = 50000", "cpu.cfs_quota_us = -1", "pids.max = max",
                          "memory.limit_in_bytes = -1"));
  EXPECT_THAT(writes(lower(values, v2)),
              ElementsAre("cpu.max = max 50000", "pids.max = max", "memory.max = max"));
}

TEST(LowerQuota, WritesPeriodBeforeQuota) {
  struct CpuMaxCase {
    std::string name;
    std::optional<Micros> quota;
    std::optional<Micros> period;
    std::vector<std::string> v1;
    std::vector<std::string> v2;
  };
  for (const auto& c : std::vector<CpuMaxCase>{
           {"Nothing", {}, {}, {}, {}},
           {"ForcedGuaranteedHasNoQuota",
            Micros{0},
            Micros{100'000},
            {"cpu.cfs_period_us = 100000", "cpu.cfs_quota_us = -1"},
            {"cpu.max = max 100000"}},
           {"QuotaAloneGetsTheDefaultPeriod",
            Micros{2'000},
            {},
            {"cpu.cfs_period_us = 100000", "cpu.cfs_quota_us = 2000"},
            {"cpu.max = 2000 100000"}},
           {"PeriodAlone", {}, Micros{5'000}, {"cpu.cfs_period_us = 5000"}, {"cpu.max = max 5000"}},
       }) {
    SCOPED_TRACE(c.name);
    const CgroupValues values{.cpu_quota = c.quota, .cpu_period = c.period};
    EXPECT_EQ(writes(lower(values, {.cpu = CgroupVersion::kV1})), c.v1);
    EXPECT_EQ(writes(lower(values, {.cpu = CgroupVersion::kV2})), c.v2);
  }
}

TEST(LowerValues, WritesUnifiedValuesLastAndAtLeastOneProcess) {
  EXPECT_THAT(
      writes(lower({.memory_limit = Bytes{5}, .unified = {{"memory.max", "max"}}}, kNoHugetlb)),
      ElementsAre("memory.max = 5", "memory.max = max"));
  EXPECT_THAT(writes(lower({.pids_limit = 0}, kNoHugetlb)), ElementsAre("pids.max = 1"));
}

TEST(LowerValues, ComparesTheControllerOfAUnifiedFileWhole) {
  const CgroupValues values{.unified = {{"cpu.weight", "7"},
                                        {"memory.oom.group", "1"},
                                        {"io.max", "8:0 rbps=1"},
                                        {"memorable.low", "1"}}};
  EXPECT_THAT(writes(lower(values, {.cpu = CgroupVersion::kV2})), ElementsAre("cpu.weight = 7"));
  EXPECT_THAT(writes(lower(values, {.memory = CgroupVersion::kV2})),
              ElementsAre("memory.oom.group = 1"));
}

TEST(LowerValues, EnablesIoInTheParentBeforeAWeight) {
  CgroupLayout layout{.memory = CgroupVersion::kV2, .io = CgroupVersion::kV2};
  EXPECT_EQ(lower({.memory_limit = Bytes{5}}, layout),
            lower({.memory_limit = Bytes{5}}, kNoHugetlb));
  const CgroupValues values{.memory_limit = Bytes{1'048'576}, .io_weight = 200};
  EXPECT_EQ(render(lower(values, layout)),
            "mkdir  /kubepods/burstable +io\n"
            "write  /kubepods/burstable/pod42/io.weight = 200  # pod 42\n"
            "write  /kubepods/burstable/pod42/io.bfq.weight = 109  # pod 42\n"
            "write  /kubepods/burstable/pod42/memory.max = 1048576  # pod 42\n");
  layout.io = CgroupVersion::kV1;
  EXPECT_EQ(render(lower(values, layout)),
            "write  /kubepods/burstable/pod42/blkio.weight = 1000  # pod 42\n"
            "write  /kubepods/burstable/pod42/blkio.bfq.weight = 109  # pod 42\n"
            "write  /kubepods/burstable/pod42/memory.max = 1048576  # pod 42\n");
  EXPECT_EQ(refusal_of(lower(values, layout), "blkio.weight"), OnRefusal::kIgnore);
  EXPECT_EQ(refusal_of(lower(values, layout), "blkio.bfq.weight"), OnRefusal::kIgnore);
  layout.io = std::nullopt;
  EXPECT_EQ(render(lower(values, layout)),
            "write  /kubepods/burstable/pod42/memory.max = 1048576  # pod 42\n");
}

TEST(UnitPropertiesOfQuota, RoundsUpToTenMilliseconds) {
  struct SystemdQuotaCase {
    std::string name;
    std::int64_t quota;
    std::int64_t period;
    std::uint64_t per_second;
    std::string cpu_max;
  };
  for (const auto& c : std::vector<SystemdQuotaCase>{
           {"Whole", 5'000, 100'000, 50'000, "5000 100000"},
           {"RoundedUp", 5'100, 100'000, 60'000, "6000 100000"},
           {"LongPeriod", 1'000, 250'000, 10'000, "2500 250000"},
           {"TruncatedBeforeTheCheck", 10'001, 1'000'000, 20'000, "20000 1000000"},
           {"Unlimited", -1, 50'000, kUnitInfinity, "max 50000"},
           {"NoQuota", 0, 100'000, kUnitInfinity, "max 100000"},
       }) {
    SCOPED_TRACE(c.name);
    const CgroupValues values{.cpu_quota = Micros{c.quota}, .cpu_period = Micros{c.period}};
    EXPECT_THAT(
        unit_properties(values, kNoHugetlb, WeightFormula::kLinear),
        UnorderedElementsAre(UnitProperty{.name = "CPUQuotaPerSecUSec", .value = c.per_second},
                             UnitProperty{.name = "CPUQuotaPeriodUSec",
                                          .value = static_cast<std::uint64_t>(c.period)}));
    EXPECT_EQ(render(lower(rounded_by_systemd(values), kNoHugetlb)),
              cat("write  /kubepods/burstable/pod42/cpu.max = ", c.cpu_max, "  # pod 42\n"));
  }
}

/// The properties as systemctl shows them.
std::vector<std::string> shown(const CgroupValues& values, WeightFormula formula) {
  const std::string line =
      render({SetUnit{.path = "/a", .properties = unit_properties(values, kNoHugetlb, formula)}});
  auto words = parts_of(without_newline(line), ' ');
  words.erase(words.begin(), words.begin() + 2);  // "set    a"
  return words;
}

TEST(UnitProperties, HoldEachValueThatSystemdKeeps) {
  EXPECT_THAT(shown(full_values(), WeightFormula::kLog),
              UnorderedElementsAre("CPUWeight=100", "CPUQuotaPerSecUSec=1500000",
                                   "CPUQuotaPeriodUSec=100000", "MemoryMax=1073741824",
                                   "TasksMax=512", "MemoryLow=536870912"));
}

TEST(UnitProperties, TellTheIoWeightOnBothVersions) {
  const CgroupValues values{.io_weight = 150};
  const auto v2 = unit_properties(values, {.io = CgroupVersion::kV2}, WeightFormula::kLog);
  EXPECT_THAT(v2, ElementsAre(UnitProperty{.name = "IOWeight", .value = std::uint64_t{150}}));
  const auto v1 = unit_properties(values, {.io = CgroupVersion::kV1}, WeightFormula::kLog);
  EXPECT_EQ(v1, v2);
}

TEST(UnitProperties, TurnUnlimitedIntoInfinity) {
  EXPECT_THAT(
      shown({.memory_limit = Bytes{-1}, .pids_limit = -1, .unified = {{"memory.swap.max", "max"}}},
            WeightFormula::kLinear),
      UnorderedElementsAre("MemoryMax=infinity", "TasksMax=infinity", "MemorySwapMax=infinity"));
}

TEST(CgroupLayout, KnowsEachController) {
  const CgroupLayout layout{.cpu = kV1, .hugetlb = kV2, .pids = kV1, .io = kV2};
  EXPECT_EQ(layout.version_of(Controller::kCpu), kV1);
  EXPECT_EQ(layout.version_of(Controller::kMemory), std::nullopt);
  EXPECT_EQ(layout.version_of(Controller::kHugetlb), kV2);
  EXPECT_EQ(layout.version_of(Controller::kPids), kV1);
  EXPECT_EQ(layout.version_of(Controller::kCpuset), std::nullopt);
  EXPECT_EQ(layout.version_of(Controller::kIo), kV2);
  // Documentation/admin-guide/cgroup-v2.rst; cgroup-v1/blkio-controller.rst.
  EXPECT_EQ(row_of(Controller::kIo).v1_name, "blkio");
  EXPECT_EQ(row_of(Controller::kIo).v2_name, "io");
  EXPECT_TRUE(row_of(Controller::kIo).on_demand);
  EXPECT_EQ(row_of(Controller::kMemory).v1_name, "memory");
  EXPECT_EQ(row_of(Controller::kMemory).v2_name, "memory");
  EXPECT_FALSE(row_of(Controller::kMemory).on_demand);
}

}  // namespace
}  // namespace podqos::core
