#include <cstdint>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "common/core/policy.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using pod_text::container;
using pod_text::list;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

constexpr std::int64_t kGi = 1'073'741'824;
constexpr Bytes kNode{10 * kGi};

Container full(const char* name, const char* cpu, const char* memory) {
  const ResourceList both = list({{"cpu", cpu}, {"memory", memory}});
  return container(name, both, both);
}

/// A pod of one container "a" after its requests were granted beside others that hold `held`.
PodRecord granted(Container only, QosClass qos_class, const TierSum& held) {
  PodRecord record;
  record.pod = pod_text::pod({std::move(only)});
  record.complete = true;
  record.qos_class = qos_class;
  record.class_source = ClassSource::kPodAnnotation;
  TierSums others;
  others.burstable = held;
  grant_requests(record, others, {}, {.memory = kNode, .cpu = MilliCpu{4000}});
  return record;
}

int score_of(const PodRecord& record, const char* name = "a") {
  ContainerRecord container;
  container.name = name;
  return container_oom_score_adj(record, container, kNode);
}

struct Grant {
  const char* name;
  const char* cpu;
  const char* memory;
  QosClass qos_class;
  TierSum held;
  std::int64_t shares;
  int score;
};
class GrantedValues : public TestWithParam<Grant> {};

TEST_P(GrantedValues, FollowWhatTheNodeGrants) {
  const Grant& row = GetParam();
  PodRecord record = granted(full("a", row.cpu, row.memory), row.qos_class, row.held);
  const auto values = pod_values(record, {});
  ASSERT_TRUE(values) << values.error().message;
  EXPECT_EQ(values->cpu_shares, CpuShares{row.shares});
  EXPECT_EQ(score_of(record), row.score);
}

constexpr TierSum kNone{};
constexpr TierSum kMuch{.pods = 1, .cpu = MilliCpu{3500}, .memory = Bytes{9 * kGi}};
constexpr TierSum kAll{.pods = 1, .cpu = MilliCpu{4000}, .memory = Bytes{10 * kGi}};

INSTANTIATE_TEST_SUITE_P(
    Table, GrantedValues,
    ValuesIn<Grant>({
        {"AllOfAGuaranteedPod", "4", "10Gi", QosClass::kGuaranteed, kNone, 4096, -997},
        {"AllOfABurstablePod", "1", "5Gi", QosClass::kBurstable, kNone, 1024, 500},
        {"NoneOfABestEffortPod", "1", "5Gi", QosClass::kBestEffort, kAll, 2, 1000},
        {"TheWholeNodeTwice", "8", "20Gi", QosClass::kGuaranteed, kNone, 4096, 3},
        {"WhatIsLeft", "1", "5Gi", QosClass::kGuaranteed, kMuch, 512, 900},
        {"OnlyTheMemory", "1", "1Gi", QosClass::kGuaranteed, kMuch, 512, 900},
        {"OnlyTheCpu", "500m", "2Gi", QosClass::kBurstable, kMuch, 512, 900},
        {"NothingIsLeft", "1", "5Gi", QosClass::kGuaranteed, kAll, 2, 999},
        {"AnExbibyte", "1", "7Ei", QosClass::kBurstable, kMuch, 512, 900},
    }),
    [](const TestParamInfo<Grant>& row) { return std::string{row.param.name}; });

TEST(ContainerOomScoreAdj, SharesWhatIsGrantedAmongThePodsContainers) {
  PodRecord record = granted(full("a", "1", "15Gi"), QosClass::kGuaranteed, kNone);
  record.pod.containers.push_back(full("b", "1", "5Gi"));
  grant_requests(record, {}, {}, {.memory = kNode, .cpu = MilliCpu{4000}});
  EXPECT_EQ(score_of(record, "a"), 250);
  EXPECT_EQ(score_of(record, "b"), 750);
}

TEST(ContainerOomScoreAdj, ProtectsACriticalPodOnlyWithAllThatItClaims) {
  PodRecord record = granted(full("a", "1", "5Gi"), QosClass::kGuaranteed, kMuch);
  record.pod.priority = 2'000'001'000;
  record.pod.priority_class_name = "system-node-critical";
  EXPECT_EQ(score_of(record), 900);
  record.granted = record.claimed;
  EXPECT_EQ(score_of(record), -997);
}

TEST(PodValues, LeaveAKubeletsPodsAlone) {
  PodRecord record = granted(full("a", "1", "5Gi"), QosClass::kGuaranteed, kAll);
  record.adopted = true;
  EXPECT_EQ(score_of(record), -997);
  EXPECT_EQ(pod_values(record, {})->cpu_shares, CpuShares{1024});
}

}  // namespace
}  // namespace podqos::core
