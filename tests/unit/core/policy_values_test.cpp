#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/policy.h"
#include "tests/unit/core/facts.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using facts::container_facts;
using facts::engine;
using pod_text::container;
using pod_text::list;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

constexpr std::int64_t kMi = 1'048'576;

PodRecord record_of(std::vector<Container> containers, bool complete = false) {
  PodRecord record;
  record.pod = pod_text::pod(std::move(containers));
  record.complete = complete;
  record.qos_class = QosClass::kBurstable;
  record.class_source = ClassSource::kShortForms;
  record.cgroup = "/kubepods/burstable/pod42";
  return record;
}

Container limited(const char* name, const char* cpu, const char* memory) {
  return container(name, {}, list({{"cpu", cpu}, {"memory", memory}}));
}

CgroupValues values_of(PodRecord& record, const Settings& settings = {}) {
  auto values = pod_values(record, settings);
  if (values) return std::move(*values);
  ADD_FAILURE() << values.error().message;
  return {};
}

TEST(PodValues, BoundsAPartialPodByAllItsContainers) {
  PodRecord record = record_of({limited("a", "500m", "64Mi"), limited("b", "1", "128Mi")});
  const CgroupValues values = values_of(record);
  EXPECT_EQ(values.cpu_quota, Micros{150'000});
  EXPECT_EQ(values.cpu_period, Micros{100'000});
  EXPECT_EQ(values.memory_limit, Bytes{192 * kMi});
  EXPECT_EQ(record.grown_cpu_limit, MilliCpu{1500});
  EXPECT_EQ(record.grown_memory_limit, Bytes{192 * kMi});
}

TEST(PodValues, NeverShrinksAPartialPod) {
  PodRecord record = record_of({limited("a", "1", "128Mi")});
  values_of(record);
  record.pod.containers = {limited("a", "500m", "64Mi")};
  const CgroupValues values = values_of(record);
  EXPECT_EQ(values.cpu_quota, Micros{100'000});
  EXPECT_EQ(values.memory_limit, Bytes{128 * kMi});
}

TEST(PodValues, GrowsAPartialPod) {
  PodRecord record = record_of({limited("a", "1", "128Mi")});
  values_of(record);
  record.pod.containers.push_back(limited("b", "1", "64Mi"));
  const CgroupValues values = values_of(record);
  EXPECT_EQ(values.cpu_quota, Micros{200'000});
  EXPECT_EQ(values.memory_limit, Bytes{192 * kMi});
}

TEST(PodValues, GrowsCpuAndMemoryApart) {
  PodRecord record = record_of({limited("a", "1", "128Mi")});
  values_of(record);
  record.pod.containers = {limited("a", "2", "64Mi")};
  const CgroupValues values = values_of(record);
  EXPECT_EQ(values.cpu_quota, Micros{200'000});
  EXPECT_EQ(values.memory_limit, Bytes{128 * kMi});
}

TEST(PodValues, UnboundsAPartialPodWithAContainerThatHasNoLimit) {
  PodRecord record = record_of({limited("a", "1", "128Mi")});
  values_of(record);
  record.pod.containers.push_back(container("b", list({{"cpu", "100m"}})));
  const CgroupValues values = values_of(record);
  EXPECT_EQ(values.cpu_quota, Micros{-1});
  EXPECT_EQ(values.cpu_period, Micros{100'000});
  EXPECT_EQ(values.memory_limit, Bytes{-1});
}

TEST(PodValues, UnboundsOnlyWhatHasNoLimit) {
  PodRecord record =
      record_of({limited("a", "1", "128Mi"), container("b", {}, list({{"memory", "64Mi"}}))});
  const CgroupValues values = values_of(record);
  EXPECT_EQ(values.cpu_quota, Micros{-1});
  EXPECT_EQ(values.memory_limit, Bytes{192 * kMi});
}

TEST(PodValues, UnboundsAPartialPodOfWhichNothingIsKnown) {
  PodRecord record = record_of({});
  const CgroupValues values = values_of(record);
  EXPECT_EQ(values.cpu_quota, Micros{-1});
  EXPECT_EQ(values.memory_limit, Bytes{-1});
}

TEST(PodValues, KeepsToTheConfiguredPeriod) {
  PodRecord record = record_of({limited("a", "1", "64Mi")});
  Settings settings;
  settings.cpu_cfs_quota_period = Micros{20'000};
  const CgroupValues values = values_of(record, settings);
  EXPECT_EQ(values.cpu_quota, Micros{20'000});
  EXPECT_EQ(values.cpu_period, Micros{20'000});
}

TEST(PodValues, SetsNoQuotaWhereTheOperatorWantsNone) {
  PodRecord record = record_of({limited("a", "1", "64Mi")});
  Settings settings;
  settings.cpu_cfs_quota = false;
  EXPECT_EQ(values_of(record, settings).cpu_quota, Micros{-1});
}

TEST(PodValues, LeavesAWholePodAsKubernetesHasIt) {
  PodRecord record =
      record_of({limited("a", "1", "128Mi"), container("b", list({{"cpu", "100m"}}))}, true);
  const CgroupValues values = values_of(record);
  EXPECT_EQ(values.cpu_shares, CpuShares{102});
  EXPECT_EQ(values.cpu_quota, std::nullopt);
  EXPECT_EQ(values.memory_limit, std::nullopt);
  EXPECT_EQ(record.grown_cpu_limit, std::nullopt);
  EXPECT_EQ(record.grown_memory_limit, std::nullopt);
}

TEST(PodValues, LimitsProcessesAsConfigured) {
  PodRecord record = record_of({}, true);
  Settings settings;
  settings.pod_pids_limit = 77;
  EXPECT_EQ(values_of(record, settings).pids_limit, 77);
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

TEST(ContainerValues, AreNoneForAnUnknownContainer) {
  EXPECT_EQ(container_values_of(record_of({limited("a", "1", "64Mi")}, true), "b"), CgroupValues{});
}

TEST(ContainerValues, AreNoneWhereTheEngineHasSetThemAll) {
  PodRecord record = record_of({limited("a", "1", "64Mi")});
  record.class_source = ClassSource::kInference;
  EXPECT_EQ(container_values_of(record, "a"), CgroupValues{});
}

TEST(ContainerValues, FindInitAndEphemeralContainers) {
  PodRecord record = record_of({}, true);
  record.pod.init_containers = {pod_text::init("i", list({{"cpu", "1"}}))};
  record.pod.ephemeral_containers = {container("e", {}, {}, ContainerKind::kEphemeral)};
  EXPECT_EQ(container_values_of(record, "i").cpu_shares, CpuShares{1024});
  EXPECT_EQ(container_values_of(record, "e").cpu_shares, CpuShares{2});
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
}

TEST(ContainerOomScoreAdj, ProtectsASandbox) {
  PodRecord record = record_of({});
  record.qos_class = QosClass::kBestEffort;
  ContainerRecord sandbox;
  sandbox.sandbox = true;
  EXPECT_EQ(container_oom_score_adj(record, sandbox, Bytes{1000}), -998);
}

TEST(ContainerOomScoreAdj, TakesAnUnknownContainerForOneWithoutRequests) {
  ContainerRecord stranger;
  stranger.name = "b";
  EXPECT_EQ(container_oom_score_adj(record_of({}), stranger, Bytes{1000}), 999);
}

constexpr CgroupVersion kV1 = CgroupVersion::kV1;
constexpr CgroupVersion kV2 = CgroupVersion::kV2;

CgroupLayout layout_of(CgroupVersion version) {
  return {.cpu = version,
          .memory = version,
          .hugetlb = version,
          .pids = version,
          .cpuset = version,
          .hugepage_labels = {"2MB", "1GB"}};
}

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
EngineResources unified(const char* file) {
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

INSTANTIATE_TEST_SUITE_P(Table, MissingValues,
                         ValuesIn<Missing>({
                             {"Nothing", {}, wanted()},
                             {"Shares", engine({.shares = 1024}), wanted_but(kNoShares)},
                             {"Weight", unified("cpu.weight"), wanted_but(kNoShares)},
                             {"Quota", engine({.quota = 10'000}), wanted_but(kNoQuota)},
                             {"UnlimitedQuota", engine({.quota = -1}), wanted_but(kNoQuota)},
                             {"CpuMax", unified("cpu.max"), wanted_but(kNoQuota)},
                             {"Memory", engine({.memory = 8192}), wanted_but(kNoMemory)},
                             {"UnlimitedMemory", engine({.memory = -1}), wanted_but(kNoMemory)},
                             {"MemoryMax", unified("memory.max"), wanted_but(kNoMemory)},
                             {"Pids", engine({.pids = 5}), wanted_but(kNoPids)},
                             {"UnlimitedPids", engine({.pids = -1}), wanted_but(kNoPids)},
                             {"PidsMax", unified("pids.max"), wanted_but(kNoPids)},
                             {"ThesePages", with_hugepages("2MB"), wanted_but(kNoPages)},
                             {"OtherPages", with_hugepages("1GB"), wanted()},
                             {"AnotherFile", unified("memory.high"), wanted()},
                         }),
                         [](const TestParamInfo<Missing>& row) {
                           return std::string{row.param.name};
                         });

TEST(MissingValues, AreOnlyThoseThatLimit) {
  const CgroupValues unlimited{.cpu_quota = Micros{-1},
                               .cpu_period = Micros{100'000},
                               .memory_limit = Bytes{0},
                               .hugepages = {{"2MB", Bytes{0}}}};
  EXPECT_EQ(missing_values(unlimited, {}, layout_of(kV2)), CgroupValues{});
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
  EXPECT_EQ(config_edit("/kubepods/pod42/c1", wanted(), -997),
            (ConfigEdit{.cgroups_path = "/kubepods/pod42/c1",
                        .cpu_shares = CpuShares{512},
                        .cpu_quota = Micros{50'000},
                        .cpu_period = Micros{100'000},
                        .memory_limit = Bytes{4096},
                        .pids_limit = 77,
                        .hugepages = {{"2MB", Bytes{4'194'304}}},
                        .oom_score_adj = -997}));
}

struct Leaf {
  const char* name;
  const char* id;
  std::optional<std::string> cgroups_path;
  const char* want;
};
class ContainerLeaf : public TestWithParam<Leaf> {};

TEST_P(ContainerLeaf, KeepsTheEnginesNameWhereItHoldsTheId) {
  ContainerFacts facts = container_facts(GetParam().id);
  facts.cgroups_path = GetParam().cgroups_path;
  EXPECT_EQ(container_leaf(facts, record_of({})), GetParam().want);
}

INSTANTIATE_TEST_SUITE_P(Table, ContainerLeaf,
                         ValuesIn<Leaf>({
                             {"NoPath", "c1", std::nullopt, "c1"},
                             {"Podmans", "c1", "/libpod_parent/p/libpod-c1", "libpod-c1"},
                             {"PlainId", "c1", "/kubepods/pod9/c1", "c1"},
                             {"ARelativePath", "c1", "x-c1", "x-c1"},
                             {"AnotherName", "c1", "/user/shell", "c1"},
                             {"TheIdFurtherUp", "c1", "/c1/payload", "c1"},
                             {"ASlashAtTheEnd", "c1", "/c1/", "c1"},
                         }),
                         [](const TestParamInfo<Leaf>& row) {
                           return std::string{row.param.name};
                         });

struct BadId {
  const char* name;
  std::string id;
};
class ContainerLeafBadId : public TestWithParam<BadId> {};

TEST_P(ContainerLeafBadId, IsRefused) {
  const auto leaf = container_leaf(container_facts(GetParam().id), record_of({}));
  ASSERT_FALSE(leaf);
  EXPECT_EQ(leaf.error().code, ErrorCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Table, ContainerLeafBadId,
                         ValuesIn<BadId>({
                             {"Empty", ""},
                             {"Up", ".."},
                             {"ASlash", "a/b"},
                             {"ANewline", "a\nb"},
                             {"ANul", std::string{"a\0b", 3}},
                             {"TooLong", std::string(256, 'a')},
                         }),
                         [](const TestParamInfo<BadId>& row) {
                           return std::string{row.param.name};
                         });

PodRecord holding(const char* id, const char* bundle, const char* cgroup) {
  PodRecord record = record_of({});
  ContainerRecord& held = record.containers.emplace_back();
  held.id = id;
  held.bundle = bundle;
  held.cgroup = cgroup;
  return record;
}

TEST(ContainerLeafUnique, TellsOneIdUnderTwoRuntimesApart) {
  const PodRecord record = holding("c1", "/a", "/kubepods/burstable/pod42/c1");
  const auto leaf = container_leaf(container_facts("c1", "/b"), record);
  ASSERT_TRUE(leaf);
  EXPECT_NE(*leaf, "c1");
  EXPECT_TRUE(leaf->starts_with("c1-"));
  EXPECT_EQ(leaf->size(), std::string{"c1-"}.size() + 8);
  EXPECT_EQ(container_leaf(container_facts("c1", "/b"), record), leaf);
  EXPECT_NE(container_leaf(container_facts("c1", "/d"), record), leaf);
}

TEST(ContainerLeafUnique, LetsARestartedContainerKeepItsName) {
  EXPECT_EQ(container_leaf(container_facts("c1", "/a"),
                           holding("c1", "/a", "/kubepods/burstable/pod42/c1")),
            "c1");
}

TEST(ContainerLeafUnique, TellsTwoIdsWithOneLeafApart) {
  ContainerFacts facts = container_facts("1", "/b");
  facts.cgroups_path = "/x/c1";
  EXPECT_NE(container_leaf(facts, holding("c1", "/a", "/kubepods/burstable/pod42/c1")), "c1");
}

TEST(ContainerLeafUnique, DoesNotMindTheSameNameInAnotherCgroup) {
  EXPECT_EQ(container_leaf(container_facts("c1", "/b"), holding("c1", "/a", "/system.slice/c1")),
            "c1");
}

TEST(EngineSetsOom, TakesZeroForUnset) {
  ContainerFacts facts = container_facts("c1");
  EXPECT_FALSE(engine_sets_oom(facts));
  facts.oom_score_adj = 0;
  EXPECT_FALSE(engine_sets_oom(facts));
  facts.oom_score_adj = -998;
  EXPECT_TRUE(engine_sets_oom(facts));
}

struct Formula {
  const char* name;
  WeightFormulaSetting setting;
  std::optional<WeightFormula> observed;
  WeightFormula want;
};
class WeightFormulaFor : public TestWithParam<Formula> {};

TEST_P(WeightFormulaFor, IsTheConfiguredOneElseTheObserved) {
  Settings settings;
  settings.weight_formula = GetParam().setting;
  EXPECT_EQ(weight_formula(settings, GetParam().observed), GetParam().want);
}

constexpr auto kLinear = WeightFormula::kLinear;
constexpr auto kLog = WeightFormula::kLog;

INSTANTIATE_TEST_SUITE_P(
    Table, WeightFormulaFor,
    ValuesIn<Formula>({
        {"Unknown", WeightFormulaSetting::kAuto, std::nullopt, kLog},
        {"ObservedLinear", WeightFormulaSetting::kAuto, kLinear, kLinear},
        {"ObservedLog", WeightFormulaSetting::kAuto, kLog, kLog},
        {"LinearAgainstTheObserved", WeightFormulaSetting::kLinear, kLog, kLinear},
        {"LogAgainstTheObserved", WeightFormulaSetting::kLog, kLinear, kLog},
    }),
    [](const TestParamInfo<Formula>& row) { return std::string{row.param.name}; });

}  // namespace
}  // namespace podqos::core
