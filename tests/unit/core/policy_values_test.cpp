#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/container_values.h"
#include "common/core/policy.h"
#include "tests/unit/core/facts.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using facts::container_facts;
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
  // A node that has more than any test here asks for.
  grant_requests(record, {}, {}, {.memory = Bytes{kInt64Max}, .cpu = MilliCpu{kInt64Max}});
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

TEST(PodValues, NeverBoundsAPartialPodThatWasUnbounded) {
  PodRecord record = record_of({container("a", {})});
  values_of(record);
  record.pod.containers = {limited("a", "1", "64Mi")};
  const CgroupValues values = values_of(record);
  EXPECT_EQ(values.cpu_quota, Micros{-1});
  EXPECT_EQ(values.memory_limit, Bytes{-1});
}

TEST(PodValues, RemembersWhichOfTheTwoWasUnbounded) {
  PodRecord record = record_of({container("a", {}, list({{"memory", "64Mi"}}))});
  values_of(record);
  record.pod.containers = {limited("a", "1", "128Mi")};
  const CgroupValues values = values_of(record);
  EXPECT_EQ(values.cpu_quota, Micros{-1});
  EXPECT_EQ(values.memory_limit, Bytes{128 * kMi});
}

TEST(PodValues, UnboundsAPartialPodThatIsDeclaredGuaranteed) {
  const ResourceList both = list({{"cpu", "1"}, {"memory", "64Mi"}});
  PodRecord record = record_of({container("a", both, both), container("b", {})});
  record.qos_class = QosClass::kGuaranteed;
  const CgroupValues values = values_of(record);
  EXPECT_EQ(values.cpu_quota, Micros{-1});
  EXPECT_EQ(values.memory_limit, Bytes{-1});
}

TEST(PodValues, BoundsAPartialPodThatIsDeclaredGuaranteed) {
  const ResourceList both = list({{"cpu", "1"}, {"memory", "64Mi"}});
  PodRecord record = record_of({container("a", both, both)});
  record.qos_class = QosClass::kGuaranteed;
  const CgroupValues values = values_of(record);
  EXPECT_EQ(values.cpu_quota, Micros{100'000});
  EXPECT_EQ(values.memory_limit, Bytes{64 * kMi});
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

TEST(ContainerValues, FollowASpecThatHasCompletedAnInferredPod) {
  PodRecord record = record_of({limited("a", "1", "64Mi")}, true);
  record.class_source = ClassSource::kInference;
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
  return container_unified(record, short_forms(), name, settings, kSwappingNode, files);
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

TEST(ContainerUnified, IsNothingForContainersThatNobodyHasDescribed) {
  EXPECT_EQ(unified_of(burstable_record(), {}, kBothFiles, "other"), UnifiedValues{});
  PodRecord inferred = burstable_record();
  inferred.complete = false;
  inferred.class_source = ClassSource::kInference;
  EXPECT_EQ(unified_of(inferred), UnifiedValues{});
}

// In whichever order they come.
TEST(ContainerUnified, IsNothingForAContainerBesideOneThatIsDescribed) {
  PodRecord partial = burstable_record();
  partial.complete = false;
  const PodClaim inferred;
  EXPECT_EQ(container_unified(partial, inferred, "a", {}, kSwappingNode, kBothFiles),
            UnifiedValues{});
  EXPECT_EQ(container_unified(burstable_record(), inferred, "a", {}, kSwappingNode, kBothFiles),
            unified_of(burstable_record()))
      << "podqos.io/pod describes all of them";
}

TEST(ContainerUnified, SharesSwapAsFarAsTheRequestWasGranted) {
  Settings settings;
  settings.swap_behavior = SwapBehavior::kLimitedSwap;
  settings.single_process_oom_kill = true;
  PodRecord record = burstable_record();
  record.granted.memory = Bytes{256 * kMi};
  EXPECT_EQ(unified_of(record, settings), (UnifiedValues{{"memory.swap.max", "134217728"}}));
  record.granted.memory = Bytes{0};
  EXPECT_EQ(unified_of(record, settings), (UnifiedValues{{"memory.swap.max", "0"}}));
}

// Its kubelet may have been told singleProcessOOMKill: true.
TEST(ContainerUnified, IsNothingInAKubeletsPod) {
  PodRecord adopted = burstable_record();
  adopted.adopted = true;
  EXPECT_EQ(unified_of(adopted), UnifiedValues{});
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
