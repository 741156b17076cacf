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
  return {{.guaranteed = {.pods = 1, .cpu = MilliCpu{500}, .memory = Bytes{guaranteed_memory}},
           .burstable = {
               .pods = 1, .cpu = MilliCpu{burstable_milli}, .memory = Bytes{burstable_memory}}}};
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

TEST(TierValues, LeaveOutWhatAKubeletsPodsRequest) {
  TierSums all = sums(kGi, 2 * kGi);
  all.kubelets = {.pods = 2, .cpu = MilliCpu{100}, .memory = Bytes{3 * kGi}};
  TierValues values = tier_values(all, 100, Bytes{8 * kGi});
  EXPECT_EQ(values.burstable.memory_limit, Bytes{4 * kGi});
  EXPECT_EQ(values.besteffort.memory_limit, Bytes{2 * kGi});
  all.kubelets.memory = Bytes{9 * kGi};
  values = tier_values(all, 50, Bytes{8 * kGi});
  EXPECT_EQ(values.burstable.memory_limit, Bytes{0});
  EXPECT_EQ(values.besteffort.memory_limit, Bytes{0});
}

// The rest is compared with Kubernetes' own values (pods_vectors_test.cpp).
TEST(TierValues, HoldHugeRequests) {
  const TierValues values = tier_values(sums(0, kInt64Max), 100, Bytes{kGi});
  EXPECT_EQ(values.burstable.memory_limit, Bytes{kGi});
  EXPECT_EQ(values.besteffort.memory_limit, Bytes{0});
}

TEST(SumOfOwn, LeavesAKubeletsPodsOut) {
  const TierSums all{{.guaranteed = {.pods = 1, .cpu = MilliCpu{500}, .memory = Bytes{1}},
                      .burstable = {.pods = 2, .cpu = MilliCpu{250}, .memory = Bytes{2}},
                      .besteffort = {.pods = 3, .cpu = {}, .memory = {}}},
                     {.pods = 4, .cpu = MilliCpu{9000}, .memory = Bytes{4}}};
  EXPECT_EQ(sum_of_own(all), (TierSum{.pods = 6, .cpu = MilliCpu{750}, .memory = Bytes{3}}));
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
