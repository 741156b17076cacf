#include <cstdint>

#include <gtest/gtest.h>

#include "common/core/grants.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using pod_text::container;
using pod_text::list;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

using enum QosClass;

PodRecord requesting(const char* cpu, const char* memory, QosClass qos_class = kBurstable) {
  PodRecord record;
  record.pod = pod_text::pod({container("a", list({{"cpu", cpu}, {"memory", memory}}))});
  record.qos_class = qos_class;
  return record;
}

PodRecord adopted(PodRecord record) {
  record.adopted = true;
  return record;
}

constexpr NodeCapacity kNodeOf8000Bytes{.memory = Bytes{8'000}, .cpu = MilliCpu{4'000}};

struct Granting {
  const char* name;
  PodRecord record;
  TierSums others;
  Reserved reserved;
  TierSum claimed;
  TierSum granted;
};
class GrantRequests : public TestWithParam<Granting> {};

TEST_P(GrantRequests, CountsWhatIsFree) {
  Settings settings;
  settings.kube_reserved = GetParam().reserved;
  PodRecord record = GetParam().record;
  grant_requests(record, GetParam().others, settings, kNodeOf8000Bytes);
  EXPECT_EQ(record.claimed, GetParam().claimed);
  EXPECT_EQ(record.granted, GetParam().granted);
}

TierSum sum(std::int64_t pods, std::int64_t cpu, std::int64_t memory) {
  return {.pods = pods, .cpu = MilliCpu{cpu}, .memory = Bytes{memory}};
}
TierSums others(const TierSum& guaranteed, const TierSum& burstable, const TierSum& besteffort) {
  return {.guaranteed = guaranteed, .burstable = burstable, .besteffort = besteffort};
}

INSTANTIATE_TEST_SUITE_P(
    Table, GrantRequests,
    ValuesIn<Granting>({
        {"AllOfIt", requesting("1", "1k"), {}, {}, sum(1, 1000, 1000), sum(1, 1000, 1000)},
        {"AnExbibyte", requesting("1", "1Ei"), {}, {}, sum(1, 1000, 8000), sum(1, 1000, 8000)},
        {"AnExaCpu", requesting("1E", "1k"), {}, {}, sum(1, 4000, 1000), sum(1, 4000, 1000)},
        {"WhatOthersLeave",
         requesting("4", "8k"),
         others(sum(1, 500, 1000), sum(1, 1000, 2000), {}),
         {},
         sum(1, 4000, 8000),
         sum(1, 2500, 5000)},
        {"WhatTheReserveLeaves",
         requesting("4", "8k"),
         {},
         {MilliCpu{1000}, Bytes{3000}},
         sum(1, 3000, 5000),
         sum(1, 3000, 5000)},
        {"NothingWhereAllIsGiven",
         requesting("1", "1k"),
         others(sum(1, 4000, 8000), {}, {}),
         {},
         sum(1, 1000, 1000),
         sum(1, 0, 0)},
        {"NothingWhereMoreIsGiven",
         requesting("1", "1k"),
         others(sum(1, 4000, 8000), sum(1, 4000, 8000), {}),
         {},
         sum(1, 1000, 1000),
         sum(1, 0, 0)},
        {"NothingWhereAllIsReserved",
         requesting("1", "1k"),
         {},
         {MilliCpu{9000}, Bytes{9000}},
         sum(1, 0, 0),
         sum(1, 0, 0)},
        {"WhatAKubeletsPodsLeave",
         requesting("4", "8k"),
         {.guaranteed = sum(1, 500, 1000),
          .burstable = {},
          .besteffort = {},
          .adopted = sum(3, 1000, 2000)},
         {},
         sum(1, 4000, 8000),
         sum(1, 2500, 5000)},
        {"NothingWhereAKubeletsPodsHaveMore",
         requesting("1", "1k"),
         {.guaranteed = {},
          .burstable = {},
          .besteffort = {},
          .adopted = sum(3, kInt64Max, kInt64Max)},
         {},
         sum(1, 1000, 1000),
         sum(1, 0, 0)},
        {"AllThatAnAdoptedPodClaims",
         adopted(requesting("1", "1k")),
         others(sum(1, 4000, 8000), {}, {}),
         {},
         sum(1, 1000, 1000),
         sum(1, 1000, 1000)},
        {"NothingToAnAdoptedBestEffortPod",
         adopted(requesting("1", "1k", kBestEffort)),
         {},
         {},
         sum(1, 1000, 1000),
         sum(1, 0, 0)},
        {"NothingToBestEffort",
         requesting("1", "1k", kBestEffort),
         {},
         {},
         sum(1, 1000, 1000),
         sum(1, 0, 0)},
        {"AsMuchToGuaranteed",
         requesting("1", "1k", kGuaranteed),
         {},
         {},
         sum(1, 1000, 1000),
         sum(1, 1000, 1000)},
        {"SumsAtTheEndOfTheRange",
         requesting("1", "1k"),
         others(sum(1, kInt64Max, kInt64Max), sum(1, kInt64Max, kInt64Max), {}),
         {},
         sum(1, 1000, 1000),
         sum(1, 0, 0)},
    }),
    [](const TestParamInfo<Granting>& row) { return std::string{row.param.name}; });

TEST(GrantRequests, NeedsNoRequest) {
  PodRecord record;
  record.qos_class = kBurstable;
  grant_requests(record, {}, {}, kNodeOf8000Bytes);
  EXPECT_EQ(record.claimed, sum(1, 0, 0));
  EXPECT_EQ(record.granted, sum(1, 0, 0));
}

TEST(AllocatableMemory, LeavesOutBothReserves) {
  Settings settings;
  settings.system_reserved.memory = Bytes{1000};
  settings.kube_reserved.memory = Bytes{2000};
  EXPECT_EQ(allocatable_memory(settings, kNodeOf8000Bytes), Bytes{5000});
}

TEST(AllocatableCpu, IsCapacityWithoutReserves) {
  Settings settings;
  settings.system_reserved.cpu = MilliCpu{500};
  settings.kube_reserved.cpu = MilliCpu{250};
  EXPECT_EQ(allocatable_cpu(settings, {.memory = {}, .cpu = MilliCpu{4000}}), MilliCpu{3250});
  EXPECT_EQ(allocatable_cpu(settings, {.memory = {}, .cpu = MilliCpu{700}}), MilliCpu{0});
}

}  // namespace
}  // namespace podqos::core
