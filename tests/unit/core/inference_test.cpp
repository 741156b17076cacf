#include <cstdint>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "common/core/claim.h"
#include "tests/unit/core/facts.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using facts::kNodeMemory;
using pod_text::list;
using ::testing::TestParamInfo;
using ::testing::TestWithParam;
using ::testing::ValuesIn;

struct Inferred {
  const char* name;
  EngineResources engine;
  std::optional<std::int64_t> score;
  bool believe;
  Resources want;
};
class InferResources : public TestWithParam<Inferred> {};

TEST_P(InferResources, ReadsBackWhatTheEngineWrote) {
  const Inferred& row = GetParam();
  EXPECT_EQ(infer_resources(row.engine, row.score, row.believe, kNodeMemory), row.want);
}

EngineResources engine(std::int64_t shares, std::int64_t quota = 0, std::int64_t period = 0,
                       std::int64_t memory = 0, std::int64_t reservation = 0) {
  const auto set = [](std::int64_t value) {
    return value == 0 ? std::nullopt : std::optional{value};
  };
  EngineResources out;
  out.cpu_shares = set(shares);
  out.cpu_quota = set(quota);
  out.cpu_period = set(period);
  out.memory_limit = set(memory);
  out.memory_reservation = set(reservation);
  return out;
}

INSTANTIATE_TEST_SUITE_P(
    Cpu, InferResources,
    ValuesIn<Inferred>({
        {"Nothing", {}, {}, true, {}},
        {"TwoSharesAreNoRequest", engine(2), {}, true, {}},
        {"OneCpu", engine(1024), {}, true, {list({{"cpu", "1"}}), {}}},
        {"SharesRoundUp", engine(102), {}, true, {list({{"cpu", "100m"}}), {}}},
        {"ThreeShares", engine(3), {}, true, {list({{"cpu", "3m"}}), {}}},
        {"Quota", engine(0, 150'000, 100'000), {}, true, {{}, list({{"cpu", "1500m"}})}},
        {"QuotaOfTheDefaultPeriod", engine(0, 50'000), {}, true, {{}, list({{"cpu", "500m"}})}},
        {"QuotaOfAnotherPeriod", engine(0, 5'000, 10'000), {}, true, {{}, list({{"cpu", "500m"}})}},
        {"NoQuota", engine(0, -1, 100'000), {}, true, {}},
        {"AQuotaBelowOneMilli", engine(0, 1, 1'000'000), {}, true, {{}, list({{"cpu", "1m"}})}},
        {"SharesAboveTheLimit",
         engine(2048, 100'000),
         {},
         true,
         {list({{"cpu", "1"}}), list({{"cpu", "1"}})}},
        {"SharesAtTheLimit",
         engine(1024, 100'000),
         {},
         true,
         {list({{"cpu", "1"}}), list({{"cpu", "1"}})}},
        {"SharesBelowAnUnlimitedQuota", engine(2048, -1), {}, true, {list({{"cpu", "2"}}), {}}},
        {"APeriodThatCannotBe", engine(0, 1'000, -1), {}, true, {}},
    }),
    [](const TestParamInfo<Inferred>& row) { return std::string{row.param.name}; });

INSTANTIATE_TEST_SUITE_P(
    Memory, InferResources,
    ValuesIn<Inferred>({
        {"Limit", engine(0, 0, 0, 4096), {}, true, {{}, list({{"memory", "4096"}})}},
        {"NoLimit", engine(0, 0, 0, -1), {}, true, {}},
        {"PodmansReservation",
         engine(0, 0, 0, 8192, 4096),
         {},
         false,
         {list({{"memory", "4096"}}), list({{"memory", "8192"}})}},
        {"ReservationOverScore",
         engine(0, 0, 0, 0, 4096),
         500,
         true,
         {list({{"memory", "4096"}}), {}}},
        {"ReservationAboveTheLimit",
         engine(0, 0, 0, 4096, 8192),
         {},
         false,
         {list({{"memory", "4096"}}), list({{"memory", "4096"}})}},
        {"AKubeletsScore", {}, 500, true, {list({{"memory", "500000000"}}), {}}},
        {"AScoreNobodyBelieves", {}, 500, false, {}},
        {"TheLargestScoreThatTells", {}, 998, true, {list({{"memory", "2000000"}}), {}}},
        {"ALittleRequestOrNone", {}, 999, true, {}},
        {"BestEffort", {}, 1000, true, {}},
        {"TheSmallestScoreThatTells", {}, 4, true, {list({{"memory", "996000000"}}), {}}},
        {"HeldAtThree", {}, 3, true, {}},
        {"Zero", {}, 0, true, {}},
        {"Sandbox", {}, -998, true, {}},
        {"GuaranteedRequestsItsLimit",
         engine(0, 0, 0, 4096),
         -997,
         true,
         {list({{"memory", "4096"}}), list({{"memory", "4096"}})}},
        {"GuaranteedWithoutALimit", {}, -997, true, {}},
        {"AScoreAboveTheLimit",
         engine(0, 0, 0, 4096),
         500,
         true,
         {list({{"memory", "4096"}}), list({{"memory", "4096"}})}},
        {"AScoreBeyondTheRange", {}, 5'000'000'000, true, {}},
    }),
    [](const TestParamInfo<Inferred>& row) { return std::string{row.param.name}; });

struct Score {
  const char* name;
  std::int64_t score;
  std::int64_t node;
  std::int64_t request;
};
class InferResourcesScore : public TestWithParam<Score> {};

TEST_P(InferResourcesScore, GivesTheSmallestRequestOfIt) {
  const auto inferred = infer_resources({}, GetParam().score, true, Bytes{GetParam().node});
  const auto memory = find(inferred.requests, kMemory);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->value(), GetParam().request);
  EXPECT_EQ(1000 - 1000 * GetParam().request / GetParam().node, GetParam().score);
  EXPECT_EQ(1000 - 1000 * (GetParam().request - 1) / GetParam().node, GetParam().score + 1);
}

INSTANTIATE_TEST_SUITE_P(Table, InferResourcesScore,
                         ValuesIn<Score>({
                             {"ANodeOf32Gi", 900, 34'359'738'368, 3'435'973'837},
                             {"ANodeOf8Gi", 500, 8'589'934'592, 4'294'967'296},
                             {"AnOddNode", 998, 1'000'003, 2'001},
                             {"TheSmallestScore", 4, 1'000'003, 996'003},
                         }),
                         [](const TestParamInfo<Score>& row) {
                           return std::string{row.param.name};
                         });

TEST(InferResources, SurvivesTheEndsOfTheRange) {
  const auto inferred = infer_resources(engine(kInt64Max, kInt64Max, 1, kInt64Max, kInt64Max), 500,
                                        true, Bytes{kInt64Max});
  EXPECT_EQ(find(inferred.limits, kMemory)->value(), kInt64Max);
  EXPECT_EQ(find(inferred.requests, kMemory)->value(), kInt64Max);
}

}  // namespace
}  // namespace podqos::core
