#include "common/core/pods/pod_values.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/events/decide_departure.h"
#include "tests/unit/core/byte_units.h"
#include "tests/unit/core/facts.h"
#include "tests/unit/core/layouts.h"
#include "tests/unit/core/pod_records.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using byte_units::kMi;
using facts::container_facts;
using facts::engine;
using layouts::kV1;
using layouts::kV2;
using layouts::layout_of;
using pod_text::container;
using pod_text::limited;
using pod_text::list;
using pod_text::record_of;

CgroupValues values_of(const PodRecord& record, const Settings& settings = {}) {
  auto values = pod_values(record, settings);
  if (values) return std::move(*values);
  ADD_FAILURE() << values.error().message;
  return {};
}

TEST(PodValues, GivesAnIoWeightToGuaranteedPodsOnly) {
  Settings settings;
  settings.io_weight = {.guaranteed = 500, .burstable = 100, .besteffort = 10};
  PodRecord record = record_of({limited("a", "500m", "64Mi")});
  for (const auto qos_class : {QosClass::kBurstable, QosClass::kBestEffort}) {
    record.qos_class = qos_class;
    EXPECT_EQ(values_of(record, settings).io_weight, std::nullopt);
  }
  record.qos_class = QosClass::kGuaranteed;
  EXPECT_EQ(values_of(record, settings).io_weight, 500);
  EXPECT_EQ(values_of(record).io_weight, std::nullopt);
  // A kubelet's.
  record.kubelets_own = true;
  EXPECT_EQ(values_of(record, settings).io_weight, std::nullopt);
}

/// The container ends and comes again.
void replace(PodRecord& record, Container next) {
  ContainerRecord ended;
  ended.name = next.name;
  ended.state = ContainerState::kLive;
  record.containers = {ended};
  remove_container(record, 0);
  record.pod.containers.push_back(std::move(next));
}

PodRecord guaranteed(PodRecord record) {
  record.qos_class = QosClass::kGuaranteed;
  return record;
}

/// A pod of `first` after another container of its name has replaced that.
PodRecord replaced(Container first, Container next) {
  PodRecord record = record_of({std::move(first)});
  replace(record, std::move(next));
  return record;
}

const ResourceList kOneCpu = list({{"cpu", "1"}, {"memory", "64Mi"}});
constexpr std::int64_t kUnlimited = -1;

TEST(PartialPodValues, AreBoundedByAllContainersThatRanAtOnce) {
  struct PartialPod {
    const char* name;
    PodRecord record;
    std::int64_t quota;
    std::int64_t memory;
  };
  for (const auto& row : std::vector<PartialPod>{
           {"OfAllItsContainers",
            record_of({limited("a", "500m", "64Mi"), limited("b", "1", "128Mi")}), 150'000,
            192 * kMi},
           {"NeverShrinks", replaced(limited("a", "1", "128Mi"), limited("a", "500m", "64Mi")),
            100'000, 128 * kMi},
           {"CpuAndMemoryGrowApart",
            replaced(limited("a", "1", "128Mi"), limited("a", "2", "64Mi")), 200'000, 128 * kMi},
           {"WithAContainerThatHasNoLimit",
            record_of({limited("a", "1", "128Mi"), container("b", list({{"cpu", "100m"}}))}),
            kUnlimited, kUnlimited},
           {"OnlyWhatHasNoLimitIsUnbounded",
            record_of({limited("a", "1", "128Mi"), container("b", {}, list({{"memory", "64Mi"}}))}),
            kUnlimited, 192 * kMi},
           {"StaysUnbounded", replaced(container("a", {}), limited("a", "1", "64Mi")), kUnlimited,
            kUnlimited},
           {"OneOfTheTwoStaysUnbounded",
            replaced(container("a", {}, list({{"memory", "64Mi"}})), limited("a", "1", "128Mi")),
            kUnlimited, 128 * kMi},
           {"DeclaredGuaranteedWithoutALimit",
            guaranteed(record_of({container("a", kOneCpu, kOneCpu), container("b", {})})),
            kUnlimited, kUnlimited},
           {"DeclaredGuaranteed", guaranteed(record_of({container("a", kOneCpu, kOneCpu)})),
            100'000, 64 * kMi},
           {"OfWhichNothingIsKnown", record_of({}), kUnlimited, kUnlimited},
       }) {
    SCOPED_TRACE(row.name);
    const CgroupValues values = values_of(row.record);
    EXPECT_EQ(values.cpu_quota, Micros{row.quota});
    EXPECT_EQ(values.cpu_period, Micros{100'000});
    EXPECT_EQ(values.memory_limit, Bytes{row.memory});
  }
}

TEST(PodValues, FollowTheConfiguredQuota) {
  const PodRecord record = record_of({limited("a", "1", "64Mi")});
  Settings settings;
  settings.cpu_cfs_quota_period = Micros{20'000};
  EXPECT_EQ(values_of(record, settings).cpu_quota, Micros{20'000});
  EXPECT_EQ(values_of(record, settings).cpu_period, Micros{20'000});
  settings.cpu_cfs_quota = false;
  EXPECT_EQ(values_of(record, settings).cpu_quota, Micros{-1});
}

TEST(PodValues, LeavesAWholePodAsKubernetesHasIt) {
  PodRecord record =
      record_of({limited("a", "1", "128Mi"), container("b", list({{"cpu", "100m"}}))}, true);
  Settings settings;
  settings.pod_pids_limit = 77;
  const CgroupValues values = values_of(record, settings);
  EXPECT_EQ(values.pids_limit, 77);
  EXPECT_EQ(values.cpu_shares, CpuShares{102});
  EXPECT_EQ(values.cpu_quota, std::nullopt);
  EXPECT_EQ(values.memory_limit, std::nullopt);
}

TEST(ContainerOomScoreAdj, FollowsTheClass) {
  PodRecord record = record_of({container("a", list({{"memory", "500"}}))});
  ContainerRecord app;
  app.name = "a";
  EXPECT_EQ(container_oom_score_adj(record, app, Bytes{1000}), 500);
  record.qos_class = QosClass::kGuaranteed;
  EXPECT_EQ(container_oom_score_adj(record, app, Bytes{1000}), -997);
  record.qos_class = QosClass::kBestEffort;
  EXPECT_EQ(container_oom_score_adj(record, app, Bytes{1000}), 1000);
  app.sandbox = true;
  EXPECT_EQ(container_oom_score_adj(record, app, Bytes{1000}), -998);
  // One that is not known has no requests.
  app.sandbox = false;
  EXPECT_EQ(container_oom_score_adj(record_of({}), app, Bytes{1000}), 999);
}

TEST(SetsOomScore, TakesZeroForUnset) {
  ContainerFacts facts = container_facts("c1");
  EXPECT_FALSE(facts.sets_oom_score());
  facts.oom_score_adj = 0;
  EXPECT_FALSE(facts.sets_oom_score());
  facts.oom_score_adj = -998;
  EXPECT_TRUE(facts.sets_oom_score());
}

constexpr auto kLinear = WeightFormula::kLinear;
constexpr auto kLog = WeightFormula::kLog;

TEST(WeightFormulaFor, IsTheConfiguredOneElseTheObserved) {
  struct Formula {
    const char* name;
    WeightFormulaSetting setting;
    std::optional<WeightFormula> observed;
    WeightFormula want;
  };
  for (const auto& row : std::vector<Formula>{
           {"Unknown", WeightFormulaSetting::kAuto, std::nullopt, kLog},
           {"ObservedLinear", WeightFormulaSetting::kAuto, kLinear, kLinear},
           {"ObservedLog", WeightFormulaSetting::kAuto, kLog, kLog},
           {"LinearAgainstTheObserved", WeightFormulaSetting::kLinear, kLog, kLinear},
           {"LogAgainstTheObserved", WeightFormulaSetting::kLog, kLinear, kLog},
       }) {
    SCOPED_TRACE(row.name);
    Settings settings;
    settings.weight_formula = row.setting;
    EXPECT_EQ(weight_formula(settings, row.observed), row.want);
  }
}

CgroupValues container_values_of(const PodRecord& record, const std::string& name,
                                 const Settings& settings = {}) {
  auto values = container_values(record, name, settings);
  if (values) return std::move(*values);
  ADD_FAILURE() << values.error().message;
  return {};
}

TEST(ContainerValues, FollowTheSpec) {
  Settings settings;
  settings.pod_pids_limit = 77;
  const CgroupValues values =
      container_values_of(record_of({limited("a", "1", "64Mi")}, true), "a", settings);
  EXPECT_EQ(values.cpu_shares, CpuShares{1024});
  EXPECT_EQ(values.cpu_quota, Micros{100'000});
  EXPECT_EQ(values.memory_limit, Bytes{64 * kMi});
  EXPECT_EQ(values.pids_limit, 77);
}

TEST(ContainerValues, AreNoneForAnUnknownContainerOrWhereTheEngineHasSetThemAll) {
  EXPECT_EQ(container_values_of(record_of({limited("a", "1", "64Mi")}, true), "b"), CgroupValues{});
  PodRecord record = record_of({limited("a", "1", "64Mi")});
  record.class_source = ClassSource::kInference;
  EXPECT_EQ(container_values_of(record, "a"), CgroupValues{});
  // A spec has come.
  record.complete = true;
  EXPECT_EQ(container_values_of(record, "a").memory_limit, Bytes{64 * kMi});
}

TEST(ContainerValues, FindInitAndEphemeralContainers) {
  PodRecord record = record_of({}, true);
  record.pod.init_containers = {pod_text::init("i", list({{"cpu", "1"}}))};
  record.pod.ephemeral_containers = {container("e", {}, {}, ContainerKind::kEphemeral)};
  EXPECT_EQ(container_values_of(record, "i").cpu_shares, CpuShares{1024});
  EXPECT_EQ(container_values_of(record, "e").cpu_shares, CpuShares{2});
}

constexpr MemoryFiles kBothFiles{.swap_max = true, .oom_group = true};
constexpr NodeCapacity kSwappingNode{
    .memory = Bytes{8192 * kMi}, .cpu = MilliCpu{1000}, .swap = Bytes{4096 * kMi}};

PodClaim short_forms() {
  PodClaim claim;
  claim.source = ClassSource::kShortForms;
  return claim;
}

UnifiedValues unified_of(const PodRecord& record, const Settings& settings = {},
                         const MemoryFiles& files = kBothFiles, const std::string& name = "a") {
  return container_unified(record, short_forms(), name,
                           container_memory_params(settings, kSwappingNode, files));
}

PodRecord burstable_record() {
  return record_of({container("a", list({{"memory", "1Gi"}}), list({{"memory", "2Gi"}}))}, true);
}

// KubeletConfiguration: memorySwap.swapBehavior NoSwap and singleProcessOOMKill false are the
// defaults on cgroup v2.
TEST(ContainerUnified, IsWhatAKubeletAsksForByDefault) {
  EXPECT_EQ(unified_of(burstable_record()),
            (UnifiedValues{{"memory.oom.group", "1"}, {"memory.swap.max", "0"}}));
}

TEST(ContainerUnified, IsOnlyWhatTheMachineHasFilesFor) {
  EXPECT_EQ(unified_of(burstable_record(), {}, {.swap_max = true}),
            (UnifiedValues{{"memory.swap.max", "0"}}));
  EXPECT_EQ(unified_of(burstable_record(), {}, {.oom_group = true}),
            (UnifiedValues{{"memory.oom.group", "1"}}));
  EXPECT_EQ(unified_of(burstable_record(), {}, {}), UnifiedValues{});
}

TEST(ContainerUnified, FollowsTheSettings) {
  Settings settings;
  settings.swap_behavior = SwapBehavior::kLimitedSwap;
  // KEP-2400: 1Gi of 8Gi, so an eighth of the 4Gi.
  EXPECT_EQ(unified_of(burstable_record(), settings),
            (UnifiedValues{{"memory.oom.group", "1"}, {"memory.swap.max", "536870912"}}));
  settings.swap_behavior.reset();
  EXPECT_EQ(unified_of(burstable_record(), settings), (UnifiedValues{{"memory.oom.group", "1"}}));
  settings.single_process_oom_kill = true;
  EXPECT_EQ(unified_of(burstable_record(), settings), UnifiedValues{});
}

// A kubelet may have been told singleProcessOOMKill: true.
TEST(ContainerUnified, IsNothingForContainersWithoutASpecAndAKubeletsPod) {
  EXPECT_EQ(unified_of(burstable_record(), {}, kBothFiles, "other"), UnifiedValues{});
  PodRecord record = burstable_record();
  record.kubelets_own = true;
  EXPECT_EQ(unified_of(record), UnifiedValues{});
  record = burstable_record();
  record.complete = false;
  record.class_source = ClassSource::kInference;
  EXPECT_EQ(unified_of(record), UnifiedValues{});
}

// In whichever order they come.
TEST(ContainerUnified, IsNothingForAContainerBesideOneThatIsDescribed) {
  PodRecord partial = burstable_record();
  partial.complete = false;
  const PodClaim inferred;
  const ContainerMemoryParams params = container_memory_params({}, kSwappingNode, kBothFiles);
  EXPECT_EQ(container_unified(partial, inferred, "a", params), UnifiedValues{});
  EXPECT_EQ(container_unified(burstable_record(), inferred, "a", params),
            unified_of(burstable_record()))
      << "podqos.io/pod describes all of them";
}

TEST(ContainerUnified, SharesSwapAsFarAsTheRequestWasGranted) {
  Settings settings;
  settings.swap_behavior = SwapBehavior::kLimitedSwap;
  settings.single_process_oom_kill = true;
  PodRecord record = burstable_record();
  record.counted_request.memory = Bytes{256 * kMi};
  EXPECT_EQ(unified_of(record, settings), (UnifiedValues{{"memory.swap.max", "134217728"}}));
  record.counted_request.memory = Bytes{0};
  EXPECT_EQ(unified_of(record, settings), (UnifiedValues{{"memory.swap.max", "0"}}));
}

CgroupValues wanted() {
  return {.cpu_shares = CpuShares{512},
          .cpu_quota = Micros{50'000},
          .cpu_period = Micros{100'000},
          .memory_limit = Bytes{4096},
          .hugepages = {{"2MB", Bytes{4'194'304}}},
          .pids_limit = 77};
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

/// But for a quota above the wanted one.
TEST(MissingValues, LeavesAloneWhatTheEngineHasSet) {
  struct Missing {
    const char* name;
    EngineResources engine;
    CgroupValues want;
  };
  for (const auto& row : std::vector<Missing>{
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
           {"HigherQuota", engine({.quota = 50'001}), wanted()},
           {"HigherQuotaOfAnotherPeriod", engine({.quota = 20'000, .period = 20'000}),
            wanted_quota(10'000)},
           {"OtherPages", with_hugepages("1GB"), wanted()},
           {"AnotherFile", with_unified("memory.high"), wanted()},
       }) {
    SCOPED_TRACE(row.name);
    for (const CgroupVersion version : {kV1, kV2}) {
      EXPECT_EQ(missing_values(wanted(), row.engine, layout_of(version)), row.want);
    }
  }
}

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
  // OCI runtime-spec config-linux.md: memory and swap together, which a runtime turns into
  // memory.swap.max.
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

TEST(MissingValuesLayout, AreOnlyThoseOfControllersThatAreThere) {
  struct Lacking {
    const char* name;
    void (*lose)(CgroupLayout&);
    CgroupValues want;
  };
  for (const auto& row : std::vector<Lacking>{
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
       }) {
    SCOPED_TRACE(row.name);
    CgroupLayout layout = layout_of(kV1);
    row.lose(layout);
    EXPECT_EQ(missing_values(wanted(), {}, layout), row.want);
  }
}

}  // namespace
}  // namespace podqos::core
