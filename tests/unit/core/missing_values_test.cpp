#include <cstdint>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "common/core/pod_values.h"
#include "tests/unit/core/facts.h"
#include "tests/unit/core/layouts.h"

namespace podqos::core {
namespace {

using facts::engine;
using layouts::kV1;
using layouts::kV2;
using layouts::layout_of;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

CgroupValues wanted() {
  return {.cpu_shares = CpuShares{512},
          .cpu_quota = Micros{50'000},
          .cpu_period = Micros{100'000},
          .memory_limit = Bytes{4096},
          .hugepages = {{"2MB", Bytes{4'194'304}}},
          .pids_limit = 77};
}

struct Missing {
  const char* name;
  EngineResources engine;
  CgroupValues want;
};
class MissingValues : public TestWithParam<Missing> {};

TEST_P(MissingValues, LeavesAloneWhatTheEngineHasSet) {
  for (const CgroupVersion version : {kV1, kV2}) {
    EXPECT_EQ(missing_values(wanted(), GetParam().engine, layout_of(version)), GetParam().want);
  }
}

template <class Change>
CgroupValues wanted_but(Change change) {
  CgroupValues out = wanted();
  change(out);
  return out;
}
EngineResources with_unified(const char* file) {
  EngineResources out;
  out.unified.emplace(file, "1");
  return out;
}
EngineResources with_hugepages(const char* label) {
  EngineResources out;
  out.hugepages.emplace(label, Bytes{0});
  return out;
}

constexpr auto kNoShares = [](CgroupValues& v) { v.cpu_shares.reset(); };
constexpr auto kNoMemory = [](CgroupValues& v) { v.memory_limit.reset(); };
constexpr auto kNoPids = [](CgroupValues& v) { v.pids_limit.reset(); };
constexpr auto kNoPages = [](CgroupValues& v) { v.hugepages.clear(); };
constexpr auto kNoQuota = [](CgroupValues& v) {
  v.cpu_quota.reset();
  v.cpu_period.reset();
};
/// The wanted 50 % of a CPU, in a period that the engine has set.
CgroupValues wanted_quota(std::int64_t quota) {
  return wanted_but([&](CgroupValues& v) {
    v.cpu_quota = Micros{quota};
    v.cpu_period.reset();
  });
}

INSTANTIATE_TEST_SUITE_P(
    Table, MissingValues,
    ValuesIn<Missing>({
        {"Nothing", {}, wanted()},
        {"Shares", engine({.shares = 1024}), wanted_but(kNoShares)},
        {"Weight", with_unified("cpu.weight"), wanted_but(kNoShares)},
        {"Quota", engine({.quota = 10'000}), wanted_but(kNoQuota)},
        {"UnlimitedQuota", engine({.quota = -1}), wanted_but(kNoQuota)},
        {"CpuMax", with_unified("cpu.max"), wanted_but(kNoQuota)},
        {"Memory", engine({.memory = 8192}), wanted_but(kNoMemory)},
        {"UnlimitedMemory", engine({.memory = -1}), wanted_but(kNoMemory)},
        {"MemoryMax", with_unified("memory.max"), wanted_but(kNoMemory)},
        {"Pids", engine({.pids = 5}), wanted_but(kNoPids)},
        {"UnlimitedPids", engine({.pids = -1}), wanted_but(kNoPids)},
        {"PidsMax", with_unified("pids.max"), wanted_but(kNoPids)},
        {"ThesePages", with_hugepages("2MB"), wanted_but(kNoPages)},
        {"PagesMax", with_unified("hugetlb.2MB.max"), wanted_but(kNoPages)},
        {"OtherPagesMax", with_unified("hugetlb.1GB.max"), wanted()},
        {"Period", engine({.period = 50'000}), wanted_quota(25'000)},
        {"ALongPeriod", engine({.period = 1'000'000}), wanted_quota(500'000)},
        {"APeriodBelowTheKernelsSmallestQuota", engine({.period = 1'000}), wanted_quota(1'000)},
        {"QuotaAndPeriod", engine({.quota = 10'000, .period = 20'000}), wanted_but(kNoQuota)},
        {"OtherPages", with_hugepages("1GB"), wanted()},
        {"AnotherFile", with_unified("memory.high"), wanted()},
    }),
    [](const TestParamInfo<Missing>& row) { return std::string{row.param.name}; });

CgroupValues wanted_unified() {
  CgroupValues values;
  values.unified = {{"memory.oom.group", "1"}, {"memory.swap.max", "0"}};
  return values;
}

TEST(MissingValues, AreThoseOfV2FilesThatTheEngineHasNotSet) {
  EXPECT_EQ(missing_values(wanted_unified(), {}, layout_of(kV2)), wanted_unified());
  EXPECT_EQ(
      missing_values(wanted_unified(), with_unified("memory.oom.group"), layout_of(kV2)).unified,
      (UnifiedValues{{"memory.swap.max", "0"}}));
  EXPECT_EQ(
      missing_values(wanted_unified(), with_unified("memory.swap.max"), layout_of(kV2)).unified,
      (UnifiedValues{{"memory.oom.group", "1"}}));
}

// OCI runtime-spec config-linux.md: memory and swap together, which a runtime turns into
// memory.swap.max.
TEST(MissingValues, LeaveTheEnginesSwapAlone) {
  for (const std::int64_t swap : {-1LL, 134'217'728LL}) {
    EngineResources set;
    set.memory_swap = swap;
    EXPECT_EQ(missing_values(wanted_unified(), set, layout_of(kV2)).unified,
              (UnifiedValues{{"memory.oom.group", "1"}}));
  }
}

// runc and crun refuse `with_unified` on a host whose /sys/fs/cgroup is no cgroup2.
TEST(MissingValues, AreNoV2FilesForARuntimeThatUsesV1) {
  EXPECT_EQ(missing_values(wanted_unified(), {}, layout_of(kV1)), CgroupValues{});
  CgroupLayout hybrid = layout_of(kV2);
  hybrid.cpu = kV1;
  EXPECT_EQ(missing_values(wanted_unified(), {}, hybrid), CgroupValues{});
}

TEST(MissingValues, AreOnlyThoseThatLimit) {
  const CgroupValues unlimited{.cpu_quota = Micros{-1},
                               .cpu_period = Micros{100'000},
                               .memory_limit = Bytes{0},
                               .hugepages = {{"2MB", Bytes{0}}}};
  EXPECT_EQ(missing_values(unlimited, {}, layout_of(kV2)), CgroupValues{});
}

TEST(MissingValues, AreOnlyPagesThatTheHostHas) {
  CgroupValues pages;
  pages.hugepages = {{"1GB", Bytes{1'073'741'824}}, {"2MB", Bytes{4'194'304}}};
  CgroupLayout layout = layout_of(kV2);
  layout.hugepage_labels = {"2MB"};
  EXPECT_EQ(missing_values(pages, {}, layout).hugepages,
            (HugePageLimits{{"2MB", Bytes{4'194'304}}}));
  layout.hugepage_labels.clear();
  EXPECT_EQ(missing_values(pages, {}, layout).hugepages, HugePageLimits{});
}

struct Lacking {
  const char* name;
  void (*lose)(CgroupLayout&);
  CgroupValues want;
};
class MissingValuesLayout : public TestWithParam<Lacking> {};

TEST_P(MissingValuesLayout, AreOnlyThoseOfControllersThatAreThere) {
  CgroupLayout layout = layout_of(kV1);
  GetParam().lose(layout);
  EXPECT_EQ(missing_values(wanted(), {}, layout), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(
    Table, MissingValuesLayout,
    ValuesIn<Lacking>({
        {"Cpu", [](CgroupLayout& l) { l.cpu.reset(); }, wanted_but([](CgroupValues& v) {
           kNoShares(v);
           kNoQuota(v);
         })},
        {"Memory", [](CgroupLayout& l) { l.memory.reset(); }, wanted_but([](CgroupValues& v) {
           kNoMemory(v);
           kNoPages(v);
         })},
        {"Pids", [](CgroupLayout& l) { l.pids.reset(); }, wanted_but(kNoPids)},
        {"HugePages", [](CgroupLayout& l) { l.hugetlb.reset(); }, wanted_but(kNoPages)},
        {"HugePagesElsewhere", [](CgroupLayout& l) { l.hugetlb = kV2; }, wanted_but(kNoPages)},
        {"All", [](CgroupLayout& l) { l = {}; }, {}},
    }),
    [](const TestParamInfo<Lacking>& row) { return std::string{row.param.name}; });

TEST(ConfigEditFor, HoldsPathValuesAndScore) {
  CgroupValues missing = wanted();
  missing.unified = wanted_unified().unified;
  EXPECT_EQ(config_edit("/kubepods/pod42/c1", missing, -997),
            (ConfigEdit{.cgroups_path = "/kubepods/pod42/c1",
                        .cpu_shares = CpuShares{512},
                        .cpu_quota = Micros{50'000},
                        .cpu_period = Micros{100'000},
                        .memory_limit = Bytes{4096},
                        .pids_limit = 77,
                        .hugepages = {{"2MB", Bytes{4'194'304}}},
                        .unified = wanted_unified().unified,
                        .oom_score_adj = -997}));
}

}  // namespace
}  // namespace podqos::core
