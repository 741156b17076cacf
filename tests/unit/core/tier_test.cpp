#include "common/core/kubernetes/tier.h"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/core/byte_units.h"

namespace podqos::core {
namespace {

using byte_units::kGi;
using byte_units::kMi;

TierSums sums(std::int64_t guaranteed_memory, std::int64_t burstable_memory,
              std::int64_t burstable_milli = 0) {
  return {
      .guaranteed = {.pods = 1, .cpu = MilliCpu{500}, .memory = Bytes{guaranteed_memory}},
      .burstable = {.pods = 1, .cpu = MilliCpu{burstable_milli}, .memory = Bytes{burstable_memory}},
      .besteffort = {}};
}

TEST(TierSums, GivesTheSumOfAClass) {
  TierSums all;
  all.of(QosClass::kBurstable).pods = 2;
  all.of(QosClass::kGuaranteed).pods = 1;
  all.of(QosClass::kBestEffort).pods = 3;
  EXPECT_EQ(all.burstable.pods, 2);
  EXPECT_EQ(all.guaranteed.pods, 1);
  EXPECT_EQ(all.besteffort.pods, 3);
}

TEST(TierValues, SetsSharesOnlyWithoutReservation) {
  const TierValues values = tier_values(sums(kGi, kGi, 130), {}, Bytes{8 * kGi});
  EXPECT_EQ(values.burstable, CgroupValues{.cpu_shares = CpuShares{133}});
  EXPECT_EQ(values.besteffort, CgroupValues{.cpu_shares = CpuShares{2}});
}

TEST(TierValues, LeaveOutWhatAKubeletsPodsRequest) {
  TierSums all = sums(kGi, 2 * kGi);
  all.adopted = {.pods = 2, .cpu = MilliCpu{100}, .memory = Bytes{3 * kGi}};
  TierValues values = tier_values(all, 100, Bytes{8 * kGi});
  EXPECT_EQ(values.burstable.memory_limit, Bytes{4 * kGi});
  EXPECT_EQ(values.besteffort.memory_limit, Bytes{2 * kGi});
  all.adopted.memory = Bytes{9 * kGi};
  values = tier_values(all, 50, Bytes{8 * kGi});
  EXPECT_EQ(values.burstable.memory_limit, Bytes{0});
  EXPECT_EQ(values.besteffort.memory_limit, Bytes{0});
}

TEST(SumOfOwn, LeavesAdoptedPodsOut) {
  const TierSums all{.guaranteed = {.pods = 1, .cpu = MilliCpu{500}, .memory = Bytes{1}},
                     .burstable = {.pods = 2, .cpu = MilliCpu{250}, .memory = Bytes{2}},
                     .besteffort = {.pods = 3, .cpu = {}, .memory = {}},
                     .adopted = {.pods = 4, .cpu = MilliCpu{9000}, .memory = Bytes{4}}};
  EXPECT_EQ(sum_of_own(all), (TierSum{.pods = 6, .cpu = MilliCpu{750}, .memory = Bytes{3}}));
}

TEST(TierValues, GivesAnEmptyBurstableTierTheMinimum) {
  EXPECT_EQ(tier_values({}).burstable.cpu_shares, CpuShares{2});
}

TEST(TierReservation, SubtractsRequestsOfTheTiersAbove) {
  struct ReserveCase {
    std::string name;
    std::int64_t percent;
    std::int64_t allocatable;
    std::int64_t guaranteed;
    std::int64_t burstable;
    std::optional<std::int64_t> want_burstable;
    std::optional<std::int64_t> want_besteffort;
  };
  for (const auto& c : std::vector<ReserveCase>{
           {"GuaranteedCountsAgainstBoth", 100, 8 * kGi, kGi, 0, 7 * kGi, 7 * kGi},
           {"BurstableCountsAgainstBestEffort", 100, 8 * kGi, kGi, 2 * kGi, 7 * kGi, 5 * kGi},
           {"ZeroPercentReservesNothing", 0, 8 * kGi, kGi, kGi, 8 * kGi, 8 * kGi},
           {"HalfTruncatesEachReserve", 50, 100, 3, 5, 99, 97},
           {"NeverNegative", 100, kGi, 2 * kGi, kGi, 0, 0},
           {"BestEffortAloneIsExhausted", 100, 2 * kGi, kGi, 2 * kGi, kGi, 0},
           {"UnknownAllocatableMeansNoLimit", 100, 0, kGi, kGi, {}, {}},
           {"HugeRequestDoesNotOverflow", 100, kGi, 0, kInt64Max, kGi, 0},
       }) {
    SCOPED_TRACE(c.name);
    const TierValues values =
        tier_values(sums(c.guaranteed, c.burstable), c.percent, Bytes{c.allocatable});
    const auto bytes = [](std::optional<std::int64_t> value) {
      return value ? std::optional{Bytes{*value}} : std::nullopt;
    };
    EXPECT_EQ(values.burstable.memory_limit, bytes(c.want_burstable));
    EXPECT_EQ(values.besteffort.memory_limit, bytes(c.want_besteffort));
  }
}

TEST(TierMemoryQos, ReservesWhatIsRequested) {
  const TierMemoryQos values = tier_memory_qos(sums(3, 4));
  EXPECT_EQ(values.root_memory_min, Bytes{7});
  EXPECT_EQ(values.burstable_memory_low, Bytes{4});
}

TEST(BoundedTierLimit, StaysAboveUsageAndFloor) {
  struct BoundCase {
    std::string name;
    std::int64_t wanted;
    std::optional<std::int64_t> usage;
    std::int64_t want;
  };
  for (const auto& c : std::vector<BoundCase>{
           {"RuleAboveUsageHolds", kGi, 100 * kMi, kGi},
           {"UsagePlusMarginHolds", 128 * kMi, 120 * kMi, 136 * kMi},
           {"FloorHolds", 0, 1 * kMi, 64 * kMi},
           {"UnknownUsageLeavesTheRule", kGi, {}, kGi},
           {"UnknownUsageKeepsTheFloor", 0, {}, 64 * kMi},
           {"HugeUsageDoesNotOverflow", 0, kInt64Max, kInt64Max},
       }) {
    SCOPED_TRACE(c.name);
    const auto usage = c.usage ? std::optional{Bytes{*c.usage}} : std::nullopt;
    EXPECT_EQ(bounded_tier_limit(Bytes{c.wanted}, usage, Bytes{64 * kMi}).value(), c.want);
  }
}

TEST(TierSumCapped, GivesNoMoreThanIsThere) {
  const TierSum claim{.pods = 1, .cpu = MilliCpu{3}, .memory = Bytes{8}};
  const TierSum most{.pods = 0, .cpu = MilliCpu{5}, .memory = Bytes{5}};
  EXPECT_EQ(claim.capped(most), (TierSum{.pods = 1, .cpu = MilliCpu{3}, .memory = Bytes{5}}));
  const TierSum negative{.pods = 1, .cpu = MilliCpu{-1}, .memory = Bytes{1}};
  EXPECT_EQ(negative.capped({.pods = 0, .cpu = MilliCpu{5}, .memory = Bytes{-2}}),
            (TierSum{.pods = 1, .cpu = {}, .memory = {}}));
}

}  // namespace
}  // namespace podqos::core
