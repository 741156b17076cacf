#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/departure.h"
#include "common/core/placement.h"
#include "common/core/pod_values.h"
#include "tests/unit/core/byte_units.h"
#include "tests/unit/core/facts.h"
#include "tests/unit/core/pod_records.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using byte_units::kMi;
using facts::container_facts;
using pod_text::container;
using pod_text::limited;
using pod_text::list;
using pod_text::record_of;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

CgroupValues values_of(const PodRecord& record, const Settings& settings = {}) {
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
  record.adopted = true;
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

TEST(PodValues, NeverShrinksAPartialPod) {
  PodRecord record = record_of({limited("a", "1", "128Mi")});
  replace(record, limited("a", "500m", "64Mi"));
  const CgroupValues values = values_of(record);
  EXPECT_EQ(values.cpu_quota, Micros{100'000});
  EXPECT_EQ(values.memory_limit, Bytes{128 * kMi});
}

TEST(PodValues, GrowsAPartialPod) {
  PodRecord record = record_of({limited("a", "1", "128Mi")});
  record.pod.containers.push_back(limited("b", "1", "64Mi"));
  const CgroupValues values = values_of(record);
  EXPECT_EQ(values.cpu_quota, Micros{200'000});
  EXPECT_EQ(values.memory_limit, Bytes{192 * kMi});
}

TEST(PodValues, GrowsCpuAndMemoryApart) {
  PodRecord record = record_of({limited("a", "1", "128Mi")});
  replace(record, limited("a", "2", "64Mi"));
  const CgroupValues values = values_of(record);
  EXPECT_EQ(values.cpu_quota, Micros{200'000});
  EXPECT_EQ(values.memory_limit, Bytes{128 * kMi});
}

TEST(PodValues, UnboundsAPartialPodWithAContainerThatHasNoLimit) {
  PodRecord record = record_of({limited("a", "1", "128Mi")});
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
  replace(record, limited("a", "1", "64Mi"));
  const CgroupValues values = values_of(record);
  EXPECT_EQ(values.cpu_quota, Micros{-1});
  EXPECT_EQ(values.memory_limit, Bytes{-1});
}

TEST(PodValues, RemembersWhichOfTheTwoWasUnbounded) {
  PodRecord record = record_of({container("a", {}, list({{"memory", "64Mi"}}))});
  replace(record, limited("a", "1", "128Mi"));
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
}

TEST(PodValues, LimitsProcessesAsConfigured) {
  PodRecord record = record_of({}, true);
  Settings settings;
  settings.pod_pids_limit = 77;
  EXPECT_EQ(values_of(record, settings).pids_limit, 77);
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
