#include <string>

#include <gtest/gtest.h>

#include "common/core/cgroup_values.h"

namespace podqos::core {
namespace {

struct SharesCase {
  std::string name;
  std::int64_t milli;
  std::int64_t want;
};

class CpuSharesFor : public ::testing::TestWithParam<SharesCase> {};

TEST_P(CpuSharesFor, MatchesKubelet) {
  EXPECT_EQ(cpu_shares_for(MilliCpu{GetParam().milli}).value(), GetParam().want);
}
INSTANTIATE_TEST_SUITE_P(Table, CpuSharesFor,
                         ::testing::ValuesIn<SharesCase>({
                             {"NoRequestIsKernelMinimum", 0, 2},
                             {"NegativeIsKernelMinimum", -5, 2},
                             {"BelowMinimumIsRaised", 1, 2},
                             {"TwoMilliStayAtMinimum", 2, 2},
                             {"ThreeMilliAreAboveIt", 3, 3},
                             {"RoundsDown", 100, 102},
                             {"OneCpu", 1000, 1024},
                             {"JustBelowMaximum", 255'999, 262'142},
                             {"Maximum", 256'000, 262'144},
                             {"CappedAtKernelMaximum", 256'001, 262'144},
                             {"HostileRequestDoesNotOverflow", kInt64Max, 262'144},
                         }),
                         [](const auto& c) { return c.param.name; });

struct MilliCase {
  std::string name;
  std::int64_t shares;
  std::int64_t want;
};

class MilliCpuFor : public ::testing::TestWithParam<MilliCase> {};

TEST_P(MilliCpuFor, RoundsUp) {
  EXPECT_EQ(milli_cpu_for(CpuShares{GetParam().shares}).value(), GetParam().want);
}
INSTANTIATE_TEST_SUITE_P(Table, MilliCpuFor,
                         ::testing::ValuesIn<MilliCase>({
                             {"NothingBelowTheMinimum", 1, 0},
                             {"MinimumIsTwoMilli", 2, 2},
                             {"RoundsUp", 102, 100},
                             {"ExactMultipleIsNotRaised", 128, 125},
                             {"OneBeyondAMultiple", 129, 126},
                             {"OneCpu", 1024, 1000},
                             {"Maximum", 262'144, 256'000},
                         }),
                         [](const auto& c) { return c.param.name; });

struct QuotaCase {
  std::string name;
  std::int64_t milli;
  std::int64_t period;
  std::int64_t want;
};

class CpuQuotaFor : public ::testing::TestWithParam<QuotaCase> {};

TEST_P(CpuQuotaFor, MatchesKubelet) {
  const auto& [name, milli, period, want] = GetParam();
  EXPECT_EQ(cpu_quota_for(MilliCpu{milli}, Micros{period}).value(), want);
}
INSTANTIATE_TEST_SUITE_P(Table, CpuQuotaFor,
                         ::testing::ValuesIn<QuotaCase>({
                             {"NoLimitIsNoQuota", 0, 100'000, 0},
                             {"OneCpuIsOnePeriod", 1000, 100'000, 100'000},
                             {"SmallLimitIsRaisedToOneMillisecond", 1, 100'000, 1'000},
                             {"TenMilliAreExactlyTheMinimum", 10, 100'000, 1'000},
                             {"RoundsDown", 1, 1'500'500, 1'500},
                             {"ShortPeriodStillHasTheMinimum", 500, 1'000, 1'000},
                             {"LongPeriod", 2500, 1'000'000, 2'500'000},
                             {"HostileLimitDoesNotOverflow", kInt64Max, 1'000'000, kInt64Max},
                         }),
                         [](const auto& c) { return c.param.name; });

TEST(MilliCpuForQuota, IsTheLeastWhoseQuotaIsEnough) {
  EXPECT_EQ(milli_cpu_for_quota(Micros{11'000}, Micros{100'000}), MilliCpu{110});
  EXPECT_EQ(milli_cpu_for_quota(Micros{33'330}, Micros{100'000}), MilliCpu{334});
  EXPECT_EQ(milli_cpu_for_quota(Micros{1'001}, Micros{1'000'000}), MilliCpu{2});
  // MilliCPUToQuota rounds down: 1 milli CPU has 1500 of 1,500,500 us.
  EXPECT_EQ(milli_cpu_for_quota(Micros{1'500}, Micros{1'500'500}), MilliCpu{1});
  EXPECT_EQ(milli_cpu_for_quota(Micros{kInt64Max}, Micros{1}), MilliCpu{kInt64Max});
}

TEST(MilliCpuForQuota, HasNoAnswerWithoutAQuota) {
  EXPECT_EQ(milli_cpu_for_quota(Micros{-1}, Micros{100'000}), std::nullopt);
  EXPECT_EQ(milli_cpu_for_quota(Micros{0}, Micros{100'000}), std::nullopt);
}

struct WeightCase {
  std::string name;
  std::int64_t shares;
  std::int64_t linear;
  std::int64_t log;
};

class CpuWeightFor : public ::testing::TestWithParam<WeightCase> {};

TEST_P(CpuWeightFor, FollowsBothFormulas) {
  const CpuShares shares{GetParam().shares};
  EXPECT_EQ(cpu_weight_for(shares, WeightFormula::kLinear).value(), GetParam().linear);
  EXPECT_EQ(cpu_weight_for(shares, WeightFormula::kLog).value(), GetParam().log);
}
INSTANTIATE_TEST_SUITE_P(Table, CpuWeightFor,
                         ::testing::ValuesIn<WeightCase>({
                             {"BelowMinimumCountsAsMinimum", 0, 1, 1},
                             {"Minimum", 2, 1, 1},
                             {"TenthOfACpu", 102, 4, 17},
                             {"QuarterOfACpu", 256, 10, 35},
                             {"HalfACpu", 512, 20, 59},
                             {"OneCpu", 1024, 39, 100},
                             {"TwoCpus", 2048, 79, 174},
                             {"Maximum", 262'144, 10'000, 10'000},
                             {"BeyondMaximumIsHeld", kInt64Max, 10'000, 10'000},
                         }),
                         [](const auto& c) { return c.param.name; });

TEST(SharesForLinearWeight, LosesWhatTheWeightRoundedAway) {
  EXPECT_EQ(shares_for_linear_weight(CpuWeight{1}).value(), 2);
  EXPECT_EQ(shares_for_linear_weight(CpuWeight{39}).value(), 998);
  EXPECT_EQ(shares_for_linear_weight(CpuWeight{100}).value(), 2597);
  EXPECT_EQ(shares_for_linear_weight(CpuWeight{10'000}).value(), 262'144);
}

}  // namespace
}  // namespace podqos::core
