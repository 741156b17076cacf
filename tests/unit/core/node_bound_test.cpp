#include <cstdint>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "common/core/grants.h"
#include "common/core/pod_values.h"
#include "tests/unit/core/byte_units.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using byte_units::kGi;
using pod_text::container;
using pod_text::list;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

constexpr Bytes kMemoryOf10Gi{10 * kGi};

Container full(const char* name, const char* cpu, const char* memory) {
  const ResourceList both = list({{"cpu", cpu}, {"memory", memory}});
  return container(name, both, both);
}

/// The record of a pod of one container "a" on a node with 4 cpus, where others hold `held`.
PodRecord recorded(Container only, QosClass qos_class, const TierSum& held = {}) {
  PodRecord record;
  record.pod = pod_text::pod({std::move(only)});
  record.complete = true;
  record.qos_class = qos_class;
  record.class_source = ClassSource::kPodAnnotation;
  TierSums others;
  others.burstable = held;
  grant_requests(record, others, {}, {.memory = kMemoryOf10Gi, .cpu = MilliCpu{4000}});
  return record;
}

int score_of(const PodRecord& record, const char* name = "a") {
  ContainerRecord container;
  container.name = name;
  return container_oom_score_adj(record, container, kMemoryOf10Gi);
}

struct Claim {
  const char* name;
  const char* cpu;
  const char* memory;
  QosClass qos_class;
  TierSum held;
  std::int64_t shares;
  int score;
};
class NodeBound : public TestWithParam<Claim> {};

TEST_P(NodeBound, HoldsOnlyWhatNoNodeCouldGive) {
  const Claim& row = GetParam();
  PodRecord record = recorded(full("a", row.cpu, row.memory), row.qos_class, row.held);
  const auto values = pod_values(record, {});
  ASSERT_TRUE(values) << values.error().message;
  EXPECT_EQ(values->cpu_shares, CpuShares{row.shares});
  EXPECT_EQ(score_of(record), row.score);
}

constexpr TierSum kNothingHeld{};
constexpr TierSum kAllHeld{.pods = 1, .cpu = MilliCpu{4000}, .memory = Bytes{10 * kGi}};

INSTANTIATE_TEST_SUITE_P(
    Table, NodeBound,
    ValuesIn<Claim>({
        {"WholeNodeGuaranteed", "4", "10Gi", QosClass::kGuaranteed, kNothingHeld, 4096, -997},
        {"HalfOfIt", "1", "5Gi", QosClass::kBurstable, kNothingHeld, 1024, 500},
        // A kubelet would have refused it; beside others that took all before it keeps its values.
        {"NothingLeftForGuaranteed", "1", "5Gi", QosClass::kGuaranteed, kAllHeld, 1024, -997},
        {"NothingLeftForBurstable", "1", "5Gi", QosClass::kBurstable, kAllHeld, 1024, 500},
        {"BestEffort", "8", "20Gi", QosClass::kBestEffort, kNothingHeld, 2, 1000},
        {"TwiceTheNode", "8", "20Gi", QosClass::kGuaranteed, kNothingHeld, 4096, 3},
        {"TwiceItsCpu", "8", "5Gi", QosClass::kGuaranteed, kNothingHeld, 4096, 500},
        {"TwiceItsMemory", "1", "20Gi", QosClass::kGuaranteed, kNothingHeld, 1024, 3},
        {"OneByteMore", "1", "10737418241", QosClass::kGuaranteed, kNothingHeld, 1024, 3},
        {"OneMilliCpuMore", "4001m", "5Gi", QosClass::kGuaranteed, kNothingHeld, 4096, 500},
        {"APebibyte", "1", "1Pi", QosClass::kBurstable, kNothingHeld, 1024, 3},
        // The most for which the kernel takes a quota.
        {"MostCpusOfAQuota", "175921860", "1Gi", QosClass::kBurstable, kNothingHeld, 4096, 900},
    }),
    [](const TestParamInfo<Claim>& row) { return std::string{row.param.name}; });

TEST(ContainerOomScoreAdj, ScoresEachContainerOfAPodBeyondTheNode) {
  PodRecord record = recorded(full("a", "1", "2Gi"), QosClass::kGuaranteed);
  record.pod.containers.push_back(full("b", "1", "15Gi"));
  grant_requests(record, {}, {}, {.memory = kMemoryOf10Gi, .cpu = MilliCpu{4000}});
  EXPECT_EQ(score_of(record, "a"), 800);
  EXPECT_EQ(score_of(record, "b"), 3);
}

TEST(ContainerOomScoreAdj, ProtectsACriticalPodOnlyWithinTheNode) {
  for (const auto& [memory, score] : {std::pair{"5Gi", -997}, std::pair{"11Gi", 3}}) {
    PodRecord record = recorded(full("a", "1", memory), QosClass::kBurstable);
    record.pod.priority = 2'000'001'000;
    record.pod.priority_class_name = "system-node-critical";
    EXPECT_EQ(score_of(record), score) << memory;
    record.pod.priority.reset();
    record.pod.is_static = true;
    EXPECT_EQ(score_of(record), score) << memory;
  }
}

TEST(NodeBound, LeavesAKubeletsPodsAlone) {
  PodRecord record = recorded(full("a", "8", "20Gi"), QosClass::kGuaranteed);
  record.adopted = true;
  EXPECT_EQ(score_of(record), -997);
  EXPECT_EQ(pod_values(record, {})->cpu_shares, CpuShares{8192});
}

}  // namespace
}  // namespace podqos::core
