#include "common/core/lowering.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/layouts.h"

namespace podqos::core {
namespace {

using layouts::layout_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

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
  CgroupLayout hybrid = layout_of(CgroupVersion::kV1);
  hybrid.hugetlb = CgroupVersion::kV2;
  EXPECT_EQ(render(lower(full_values(), hybrid)),
            "write  /kubepods/burstable/pod42/cpu.shares = 1024  # pod 42\n"
            "write  /kubepods/burstable/pod42/cpu.cfs_period_us = 100000  # pod 42\n"
            "write  /kubepods/burstable/pod42/cpu.cfs_quota_us = 150000  # pod 42\n"
            "write  /kubepods/burstable/pod42/hugetlb.1GB.max = 0  # pod 42\n"
            "write  /kubepods/burstable/pod42/hugetlb.1GB.rsvd.max = 0  # pod 42\n"
            "write  /kubepods/burstable/pod42/hugetlb.2MB.max = 4194304  # pod 42\n"
            "write  /kubepods/burstable/pod42/hugetlb.2MB.rsvd.max = 4194304  # pod 42\n"
            "write  /kubepods/burstable/pod42/pids.max = 512  # pod 42\n"
            "write  /kubepods/burstable/pod42/memory.limit_in_bytes = 1073741824  # pod 42\n");
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

struct CpuMaxCase {
  std::string name;
  std::optional<Micros> quota;
  std::optional<Micros> period;
  std::vector<std::string> v1;
  std::vector<std::string> v2;
};

class LowerQuota : public ::testing::TestWithParam<CpuMaxCase> {};

TEST_P(LowerQuota, WritesPeriodBeforeQuota) {
  const CpuMaxCase& c = GetParam();
  const CgroupValues values{.cpu_quota = c.quota, .cpu_period = c.period};
  EXPECT_EQ(writes(lower(values, {.cpu = CgroupVersion::kV1})), c.v1);
  EXPECT_EQ(writes(lower(values, {.cpu = CgroupVersion::kV2})), c.v2);
}
INSTANTIATE_TEST_SUITE_P(
    Table, LowerQuota,
    ::testing::ValuesIn<CpuMaxCase>({
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
    }),
    [](const auto& c) { return c.param.name; });

TEST(LowerValues, ComparesTheControllerOfAUnifiedFileWhole) {
  const CgroupValues values{.unified = {{"cpu.weight", "7"},
                                        {"memory.oom.group", "1"},
                                        {"io.max", "8:0 rbps=1"},
                                        {"memorable.low", "1"}}};
  EXPECT_THAT(writes(lower(values, {.cpu = CgroupVersion::kV2})), ElementsAre("cpu.weight = 7"));
  EXPECT_THAT(writes(lower(values, {.memory = CgroupVersion::kV2})),
              ElementsAre("memory.oom.group = 1"));
}

TEST(LowerValues, WritesNothingOfIoWithoutAValue) {
  CgroupLayout layout = layout_of(CgroupVersion::kV2);
  layout.io = CgroupVersion::kV2;
  EXPECT_EQ(lower(full_values(), layout), lower(full_values(), layout_of(CgroupVersion::kV2)));
}

TEST(LowerValues, EnablesIoInTheParentBeforeAWeight) {
  CgroupLayout layout{.memory = CgroupVersion::kV2, .io = CgroupVersion::kV2};
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
  layout.io = std::nullopt;
  EXPECT_EQ(render(lower(values, layout)),
            "write  /kubepods/burstable/pod42/memory.max = 1048576  # pod 42\n");
}

TEST(LowerValues, GoesOnWithoutAFileForTheIoWeight) {
  const CgroupLayout layout{.io = CgroupVersion::kV1};
  const Plan plan = lower({.io_weight = 200}, layout);
  EXPECT_EQ(refusal_of(plan, "blkio.weight"), OnRefusal::kIgnore);
  EXPECT_EQ(refusal_of(plan, "blkio.bfq.weight"), OnRefusal::kIgnore);
}

TEST(V2Files, LetsUnifiedValuesWin) {
  CgroupValues values = full_values();
  values.unified = {{"memory.max", "max"}};
  EXPECT_THAT(v2_files(values, {}, WeightFormula::kLinear),
              UnorderedElementsAre(Pair("cpu.weight", "39"), Pair("cpu.max", "150000 100000"),
                                   Pair("hugetlb.2MB.max", "4194304"),
                                   Pair("hugetlb.2MB.rsvd.max", "4194304"), Pair("pids.max", "512"),
                                   Pair("memory.max", "max")));
}

TEST(V2Files, TurnsAPidsLimitOfZeroIntoOne) {
  EXPECT_THAT(v2_files({.pids_limit = 0}, {}, WeightFormula::kLinear),
              ElementsAre(Pair("pids.max", "1")));
}

struct SystemdQuotaCase {
  std::string name;
  std::int64_t quota;
  std::int64_t period;
  std::string per_second;
  std::string cpu_max;
};

class SystemdWritesQuota : public ::testing::TestWithParam<SystemdQuotaCase> {};

TEST_P(SystemdWritesQuota, RoundsUpToTenMilliseconds) {
  const SystemdQuotaCase& c = GetParam();
  const SystemdWrites writes = systemd_writes(
      {.cpu_quota = Micros{c.quota}, .cpu_period = Micros{c.period}}, {}, WeightFormula::kLinear);
  EXPECT_EQ(writes.properties.at("CPUQuotaPerSecUSec"), c.per_second);
  EXPECT_EQ(writes.properties.at("CPUQuotaPeriodUSec"), std::to_string(c.period));
  EXPECT_EQ(writes.files.at("cpu.max"), c.cpu_max);
}
INSTANTIATE_TEST_SUITE_P(Table, SystemdWritesQuota,
                         ::testing::ValuesIn<SystemdQuotaCase>({
                             {"Whole", 5'000, 100'000, "50000", "5000 100000"},
                             {"RoundedUp", 5'100, 100'000, "60000", "6000 100000"},
                             {"LongPeriod", 1'000, 250'000, "10000", "2500 250000"},
                             {"TruncatedBeforeTheCheck", 10'001, 1'000'000, "20000",
                              "20000 1000000"},
                             {"Unlimited", -1, 50'000, "18446744073709551615", "max 50000"},
                             {"NoQuota", 0, 100'000, "18446744073709551615", "max 100000"},
                         }),
                         [](const auto& c) { return c.param.name; });

TEST(SystemdWrites, GivesPropertiesAndFiles) {
  const SystemdWrites writes = systemd_writes(full_values(), {"1GB"}, WeightFormula::kLog);
  EXPECT_THAT(
      writes.properties,
      UnorderedElementsAre(Pair("CPUWeight", "100"), Pair("CPUQuotaPerSecUSec", "1500000"),
                           Pair("CPUQuotaPeriodUSec", "100000"), Pair("MemoryMax", "1073741824"),
                           Pair("TasksMax", "512"), Pair("MemoryLow", "536870912")));
  EXPECT_EQ(writes.files.at("hugetlb.1GB.max"), "0");
  EXPECT_EQ(writes.files.at("memory.low"), "536870912");
}

TEST(UnitProperties, TellTheIoWeightOnBothVersions) {
  const CgroupValues values{.io_weight = 150};
  const auto v2 = unit_properties(values, {.io = CgroupVersion::kV2}, WeightFormula::kLog);
  EXPECT_THAT(v2, ElementsAre(UnitProperty{.name = "IOWeight", .value = std::uint64_t{150}}));
  const auto v1 = unit_properties(values, {.io = CgroupVersion::kV1}, WeightFormula::kLog);
  EXPECT_EQ(v1, v2);
}

TEST(SystemdWrites, TurnsUnlimitedIntoInfinity) {
  const SystemdWrites writes = systemd_writes(
      {.memory_limit = Bytes{-1}, .pids_limit = -1, .unified = {{"memory.swap.max", "max"}}}, {},
      WeightFormula::kLinear);
  EXPECT_THAT(writes.properties,
              UnorderedElementsAre(Pair("MemoryMax", "18446744073709551615"),
                                   Pair("TasksMax", "18446744073709551615"),
                                   Pair("MemorySwapMax", "18446744073709551615")));
}

}  // namespace
}  // namespace podqos::core
