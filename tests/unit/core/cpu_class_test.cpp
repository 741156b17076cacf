#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/cgroups/value_table.h"
#include "common/core/events/cgroup_write.h"
#include "common/core/pods/pod_values.h"
#include "tests/unit/core/layouts.h"
#include "tests/unit/core/pod_records.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using layouts::kV1;
using layouts::kV2;
using layouts::layout_of;
using pod_text::container;
using pod_text::limited;
using pod_text::list;
using pod_text::record_of;

// kernel/sched/core.c tg_set_cfs_bandwidth(): burst <= quota, and both together <= 2^44 - 1 us.
TEST(CpuBurstFor, IsAPartOfTheQuotaThatTheKernelTakes) {
  struct BurstCase {
    const char* name;
    std::optional<Micros> quota;
    std::int64_t percent;
    std::int64_t want;
  };
  for (const auto& row : std::vector<BurstCase>{
           {"NoQuota", std::nullopt, 50, 0},
           {"Unlimited", Micros{-1}, 50, 0},
           {"None", Micros{50'000}, 0, 0},
           {"Half", Micros{50'000}, 50, 25'000},
           {"All", Micros{50'000}, 100, 50'000},
           {"RoundedDown", Micros{1'001}, 50, 500},
           {"TheLeastQuota", Micros{1'000}, 1, 10},
           {"BesideTheLargestQuota", Micros{17'592'186'044'415}, 100, 0},
           {"UpToTheBound", Micros{17'592'186'044'000}, 100, 415},
       }) {
    EXPECT_EQ(cpu_burst_for(row.quota, row.percent), Micros{row.want}) << row.name;
  }
}

/// A pod of the class with a quota of 50 ms.
PodRecord pod_of(QosClass qos_class) {
  PodRecord record =
      record_of({container("a", list({{"cpu", "250m"}}), list({{"cpu", "500m"}}))}, true);
  record.qos_class = qos_class;
  return record;
}

CgroupValues class_values_of(const PodRecord& record, const Settings& settings) {
  auto values = pod_values(record, settings);
  if (values) return std::move(*values);
  ADD_FAILURE() << values.error().message;
  return {};
}

PodqosAnnotations asking(std::optional<std::int64_t> burst, bool idle = false) {
  PodqosAnnotations annotations;
  annotations.cpu_burst = burst;
  annotations.cpu_idle = idle;
  return annotations;
}

class CpuClass : public ::testing::Test {
 protected:
  CpuClass() { settings_.cpu_burst = {.guaranteed = 50, .burstable = 20}; }

  std::optional<Micros> burst_of(const PodRecord& record) {
    return class_values_of(record, settings_).cpu_burst;
  }
  PodRecord granted(QosClass qos_class, const std::optional<PodRecord>& before = std::nullopt) {
    PodRecord record = pod_of(qos_class);
    decide_cpu_class(record, before, settings_);
    return record;
  }

  Settings settings_;
};

TEST_F(CpuClass, APodGetsTheBurstOfItsClass) {
  EXPECT_EQ(burst_of(granted(QosClass::kGuaranteed)), Micros{25'000});
  EXPECT_EQ(burst_of(granted(QosClass::kBurstable)), Micros{10'000});
  EXPECT_EQ(burst_of(granted(QosClass::kBestEffort)), std::nullopt);
}

TEST_F(CpuClass, WithoutTheSettingsNothingIsWritten) {
  settings_ = {};
  for (const auto qos_class :
       {QosClass::kGuaranteed, QosClass::kBurstable, QosClass::kBestEffort}) {
    const CgroupValues values = class_values_of(granted(qos_class), settings_);
    EXPECT_EQ(values.cpu_burst, std::nullopt);
    EXPECT_EQ(values.cpu_idle, std::nullopt);
  }
}

TEST_F(CpuClass, AKubeletsPodGetsNothing) {
  PodRecord record = pod_of(QosClass::kGuaranteed);
  record.kubelets_own = true;
  decide_cpu_class(record, std::nullopt, settings_);
  apply_cpu_annotations(record, asking(10, true), settings_);
  EXPECT_EQ(class_values_of(record, settings_).cpu_burst, std::nullopt);
  EXPECT_EQ(class_values_of(record, settings_).cpu_idle, std::nullopt);
}

TEST_F(CpuClass, AContainerWithoutALimitLeavesItsPodNoBurst) {
  PodRecord record = record_of({limited("a", "500m", "64Mi"), container("b", {}, {})});
  decide_cpu_class(record, std::nullopt, settings_);
  EXPECT_EQ(class_values_of(record, settings_).cpu_quota, Micros{-1});
  EXPECT_EQ(burst_of(record), Micros{0});
}

TEST_F(CpuClass, AnAuthorMayOnlyAskForLess) {
  struct AskedCase {
    const char* name;
    std::optional<std::int64_t> asked;
    TrustAnnotations trust;
    std::int64_t want;
  };
  using enum TrustAnnotations;
  for (const auto& row : std::vector<AskedCase>{
           {"NoAnnotation", std::nullopt, kEngineChecked, 25'000},
           {"Less", 10, kEngineChecked, 5'000},
           {"None", 0, kAll, 0},
           {"More", 80, kAll, 25'000},
           {"Unread", 10, kNone, 25'000},
       }) {
    settings_.trust_annotations = row.trust;
    PodRecord record = granted(QosClass::kGuaranteed);
    apply_cpu_annotations(record, asking(row.asked), settings_);
    EXPECT_EQ(burst_of(record), Micros{row.want}) << row.name;
  }
  settings_ = {};
  PodRecord record = granted(QosClass::kGuaranteed);
  apply_cpu_annotations(record, asking(10), settings_);
  EXPECT_EQ(burst_of(record), std::nullopt);
}

TEST_F(CpuClass, ALaterContainerDoesNotRaiseIt) {
  PodRecord record = granted(QosClass::kGuaranteed);
  apply_cpu_annotations(record, asking(10, true), settings_);
  apply_cpu_annotations(record, asking(40), settings_);
  EXPECT_EQ(burst_of(record), Micros{5'000});
  EXPECT_EQ(class_values_of(record, settings_).cpu_idle, true);
}

TEST_F(CpuClass, ARunningPodFollowsSettingsThatGrantLess) {
  const PodRecord record = granted(QosClass::kGuaranteed);
  settings_.cpu_burst.guaranteed = 80;
  EXPECT_EQ(burst_of(record), Micros{25'000});
  settings_.cpu_burst.guaranteed = 20;
  EXPECT_EQ(burst_of(record), Micros{10'000});
  settings_.cpu_burst.guaranteed.reset();
  EXPECT_EQ(burst_of(record), Micros{0});
}

TEST_F(CpuClass, WhatAnEarlierPodOfTheUidHadIsTakenBack) {
  PodRecord before = granted(QosClass::kGuaranteed);
  before.cpu_idle = true;
  settings_.cpu_burst = {};
  const CgroupValues values = class_values_of(granted(QosClass::kGuaranteed, before), settings_);
  EXPECT_EQ(values.cpu_burst, Micros{0});
  EXPECT_EQ(values.cpu_idle, false);
  EXPECT_EQ(values.cpu_shares, CpuShares{256});
}

TEST_F(CpuClass, AnIdlePodHasTheLeastShares) {
  PodRecord record = granted(QosClass::kGuaranteed);
  apply_cpu_annotations(record, asking({}, true), settings_);
  const CgroupValues values = class_values_of(record, settings_);
  EXPECT_EQ(values.cpu_idle, true);
  EXPECT_EQ(values.cpu_shares, CpuShares{2});
}

// A new besteffort tier, one that may have been changed, and one that is as it was.
TEST(DecideIdleTier, MakesTheTierIdleOrTakesItBack) {
  struct TierCase {
    const char* name;
    TreeState tree;
    bool configured;
    std::optional<bool> want;
    std::optional<bool> others;  ///< of the other tiers
  };
  for (const auto& row : std::vector<TierCase>{
           {"Fresh", TreeState::kFresh, true, true, {}},
           {"FreshWithout", TreeState::kFresh, false, {}, {}},
           {"Missing", TreeState::kMissing, true, true, false},
           {"TakenBack", TreeState::kMissing, false, false, false},
           {"AsItWas", TreeState::kUnchanged, true, {}, {}},
       }) {
    Settings settings;
    settings.cpu_idle_besteffort = row.configured;
    const TierValues values = decide_tier_write(
        {.burstable = {}, .besteffort = {.cpu_shares = CpuShares{2}}}, row.tree, {}, settings);
    EXPECT_EQ(values.besteffort.cpu_idle, row.want) << row.name;
    EXPECT_EQ(values.burstable.cpu_idle, row.others) << row.name;
    EXPECT_EQ(values.root.cpu_idle, row.others) << row.name;
  }
}

/// "FILE = VALUE" of each write.
std::vector<std::string> writes_of(const CgroupValues& values, CgroupVersion version) {
  std::vector<std::string> writes;
  for (const Step& step : lower_values("/p", values, layout_of(version), WeightFormula::kLog, "")) {
    if (const auto* file = std::get_if<WriteFile>(&step); file && file->file.starts_with("cpu."))
      writes.push_back(file->file + " = " + file->value);
  }
  return writes;
}

using ::testing::ElementsAre;

// Where the kernel is idle already it takes no weight, and no burst above the quota.
TEST(CpuClassFiles, AreWrittenInAnOrderThatTheKernelTakes) {
  const CgroupValues values{.cpu_shares = CpuShares{2},
                            .cpu_quota = Micros{50'000},
                            .cpu_period = Micros{100'000},
                            .cpu_burst = Micros{25'000},
                            .cpu_idle = true};
  EXPECT_THAT(writes_of(values, kV2),
              ElementsAre("cpu.idle = 1", "cpu.weight = 1", "cpu.max = 50000 100000",
                          "cpu.max.burst = 25000"));
  EXPECT_THAT(writes_of(values, kV1),
              ElementsAre("cpu.idle = 0", "cpu.shares = 2", "cpu.cfs_period_us = 100000",
                          "cpu.cfs_quota_us = 50000", "cpu.cfs_burst_us = 25000"));
  EXPECT_THAT(writes_of({.cpu_shares = CpuShares{2}, .cpu_idle = false}, kV2),
              ElementsAre("cpu.idle = 0", "cpu.weight = 1"));
}

// systemd 252, src/core/cgroup.h: CGROUP_WEIGHT_IDLE is 0; on cgroup v1 it is 2 shares.
TEST(CpuClassFiles, AnIdleUnitHasTheWeightZero) {
  const CgroupValues values{.cpu_shares = CpuShares{2}, .cpu_idle = true};
  EXPECT_THAT(unit_properties(values, layout_of(kV2), WeightFormula::kLog),
              ElementsAre(UnitProperty{.name = "CPUWeight", .value = std::uint64_t{0}}));
  EXPECT_THAT(unit_properties(values, layout_of(kV1), WeightFormula::kLog),
              ElementsAre(UnitProperty{.name = "CPUShares", .value = std::uint64_t{2}}));
}

}  // namespace
}  // namespace podqos::core
