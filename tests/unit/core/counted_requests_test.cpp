#include "common/core/pods/counted_requests.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/core/pods/pod_values.h"
#include "tests/unit/core/byte_units.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using byte_units::kGi;
using enum QosClass;
using pod_text::container;
using pod_text::list;

PodRecord with_class(QosClass qos_class) {
  PodRecord record;
  record.qos_class = qos_class;
  return record;
}

PodRecord requesting(const char* cpu, const char* memory, QosClass qos_class = kBurstable) {
  PodRecord record = with_class(qos_class);
  record.pod = pod_text::pod({container("a", list({{"cpu", cpu}, {"memory", memory}}))});
  return record;
}

PodRecord of_kubelet(PodRecord record) {
  record.kubelets_own = true;
  return record;
}

constexpr NodeCapacity kNodeOf8000Bytes{.memory = Bytes{8'000}, .cpu = MilliCpu{4'000}};

TierSum sum(std::int64_t cpu, std::int64_t memory) {
  return {.pods = 1, .cpu = MilliCpu{cpu}, .memory = Bytes{memory}};
}
const PodRecord kSmall = requesting("1", "1k");
const PodRecord kWhole = requesting("4", "8k");
constexpr TierSum kOfSmall{.pods = 1, .cpu = MilliCpu{1000}, .memory = Bytes{1000}};
constexpr TierSum kNoAmounts{.pods = 1, .cpu = {}, .memory = {}};

TEST(CountRequests, CountsWhatOnePodMayClaim) {
  struct Counting {
    const char* name;
    PodRecord record;
    TierSum capped;
    TierSum counted;
    Reserved reserved = {};
  };
  for (const auto& row : std::vector<Counting>{
           {"AllOfIt", kSmall, kOfSmall, kOfSmall},
           {"AnExbibyte", requesting("1", "1Ei"), sum(1000, 8000), sum(1000, 8000)},
           {"AnExaCpu", requesting("1E", "1k"), sum(4000, 1000), sum(4000, 1000)},
           {"WhatTheReserveLeaves",
            kWhole,
            sum(3000, 5000),
            sum(3000, 5000),
            {MilliCpu{1000}, Bytes{3000}}},
           {"NothingWhereAllIsReserved",
            kSmall,
            kNoAmounts,
            kNoAmounts,
            {MilliCpu{9000}, Bytes{9000}}},
           {"AllThatAKubeletsPodClaims", of_kubelet(kSmall), kOfSmall, kOfSmall},
           {"NothingToAKubeletsBestEffortPod", of_kubelet(requesting("1", "1k", kBestEffort)),
            kOfSmall, kNoAmounts},
           {"NothingToBestEffort", requesting("1", "1k", kBestEffort), kOfSmall, kNoAmounts},
           {"AsMuchToGuaranteed", requesting("1", "1k", kGuaranteed), kOfSmall, kOfSmall},
           {"NoRequest", with_class(kBurstable), kNoAmounts, kNoAmounts},
       }) {
    SCOPED_TRACE(row.name);
    Settings settings;
    settings.kube_reserved = row.reserved;
    PodRecord record = row.record;
    count_requests(record, settings, kNodeOf8000Bytes);
    EXPECT_EQ(record.capped_request, row.capped);
    EXPECT_EQ(record.counted_request, row.counted);
  }
}

TEST(Allocatable, IsCapacityWithoutReserves) {
  Settings settings;
  settings.system_reserved = {.cpu = MilliCpu{500}, .memory = Bytes{1000}};
  settings.kube_reserved = {.cpu = MilliCpu{250}, .memory = Bytes{2000}};
  EXPECT_EQ(allocatable_memory(settings, kNodeOf8000Bytes), Bytes{5000});
  NodeCapacity with_hugepages = kNodeOf8000Bytes;
  with_hugepages.hugepages = Bytes{4000};
  EXPECT_EQ(allocatable_memory(settings, with_hugepages), Bytes{1000});
  with_hugepages.hugepages = Bytes{6000};
  EXPECT_EQ(allocatable_memory(settings, with_hugepages), Bytes{0});
  EXPECT_EQ(allocatable_cpu(settings, {.memory = {}, .cpu = MilliCpu{4000}}), MilliCpu{3250});
  EXPECT_EQ(allocatable_cpu(settings, {.memory = {}, .cpu = MilliCpu{700}}), MilliCpu{0});
}

constexpr Bytes kMemoryOf10Gi{10 * kGi};

Container full(const char* name, const char* cpu, const char* memory) {
  const ResourceList both = list({{"cpu", cpu}, {"memory", memory}});
  return container(name, both, both);
}

/// The record of a pod of one container "a" on a node with 4 cpus.
PodRecord recorded(Container only, QosClass qos_class) {
  PodRecord record;
  record.pod = pod_text::pod({std::move(only)});
  record.complete = true;
  record.qos_class = qos_class;
  record.class_source = ClassSource::kPodAnnotation;
  count_requests(record, {}, {.memory = kMemoryOf10Gi, .cpu = MilliCpu{4000}});
  return record;
}

int score_of(const PodRecord& record, const char* name = "a") {
  ContainerRecord container;
  container.name = name;
  return container_oom_score_adj(record, container, kMemoryOf10Gi);
}

TEST(NodeBound, HoldsOnlyWhatNoNodeCouldGive) {
  struct Claim {
    const char* name;
    const char* cpu;
    const char* memory;
    QosClass qos_class;
    std::int64_t shares;
    int score;
  };
  for (const auto& row : std::vector<Claim>{
           {"WholeNodeGuaranteed", "4", "10Gi", QosClass::kGuaranteed, 4096, -997},
           {"HalfOfIt", "1", "5Gi", QosClass::kBurstable, 1024, 500},
           {"BestEffort", "8", "20Gi", QosClass::kBestEffort, 2, 1000},
           {"TwiceTheNode", "8", "20Gi", QosClass::kGuaranteed, 4096, 3},
           {"TwiceItsCpu", "8", "5Gi", QosClass::kGuaranteed, 4096, 500},
           {"TwiceItsMemory", "1", "20Gi", QosClass::kGuaranteed, 1024, 3},
           {"OneByteMore", "1", "10737418241", QosClass::kGuaranteed, 1024, 3},
           {"OneMilliCpuMore", "4001m", "5Gi", QosClass::kGuaranteed, 4096, 500},
           {"APebibyte", "1", "1Pi", QosClass::kBurstable, 1024, 3},
           // The most for which the kernel takes a quota.
           {"MostCpusOfAQuota", "175921860", "1Gi", QosClass::kBurstable, 4096, 900},
       }) {
    SCOPED_TRACE(row.name);
    PodRecord record = recorded(full("a", row.cpu, row.memory), row.qos_class);
    const auto values = pod_values(record, {});
    ASSERT_TRUE(values) << values.error().message;
    EXPECT_EQ(values->cpu_shares, CpuShares{row.shares});
    EXPECT_EQ(score_of(record), row.score);
  }
}

TEST(ContainerOomScoreAdj, ScoresEachContainerOfAPodBeyondTheNode) {
  PodRecord record = recorded(full("a", "1", "2Gi"), QosClass::kGuaranteed);
  record.pod.containers.push_back(full("b", "1", "15Gi"));
  count_requests(record, {}, {.memory = kMemoryOf10Gi, .cpu = MilliCpu{4000}});
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
  record.kubelets_own = true;
  EXPECT_EQ(score_of(record), -997);
  EXPECT_EQ(pod_values(record, {})->cpu_shares, CpuShares{8192});
}

TEST(DescribeRequests, TellsWhatOfThemCounts) {
  PodRecord record = requesting("1", "64Mi");
  record.counted_request = sum(1000, 64LL << 20);
  EXPECT_EQ(describe_requests(record), "cpu 1, memory 64Mi requested");
  record.counted_request = sum(800, 64LL << 20);
  EXPECT_EQ(describe_requests(record),
            "cpu 1, memory 64Mi requested, of which cpu 800m, memory 64Mi count");
}

TEST(DescribeLateRequests, TellsOfThoseThatCameAfterTheClass) {
  PodRecord record = requesting("50m", "0", QosClass::kBestEffort);
  EXPECT_EQ(describe_late_requests(record).value_or(""),
            "cpu 50m, memory 0 requested, of which cpu 0, memory 0 count: its first container "
            "requested nothing, so it is BestEffort; annotate the pod with podqos.io/pod "
            "(podqosctl annotate), then recreate it");
  for (const auto source : {ClassSource::kEngine, ClassSource::kQosAnnotation}) {
    record.class_source = source;
    EXPECT_EQ(describe_late_requests(record), std::nullopt);
  }
  EXPECT_EQ(describe_late_requests(of_kubelet(requesting("1", "0", QosClass::kBestEffort))),
            std::nullopt);
  EXPECT_EQ(describe_late_requests(requesting("1", "0")), std::nullopt);
  record = with_class(QosClass::kBestEffort);
  EXPECT_EQ(describe_late_requests(record), std::nullopt);
  record.pod.overhead = list({{"cpu", "10m"}});
  EXPECT_EQ(describe_late_requests(record), std::nullopt);
}

}  // namespace
}  // namespace podqos::core
