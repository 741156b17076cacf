#include "common/core/events/decide_convergence.h"

#include <cstdint>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/core/byte_units.h"

namespace podqos::core {
namespace {

using byte_units::kGi;
using byte_units::kMi;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Action = ConvergenceStep::Action;

/// A tier whose rule is 1 GiB.
constexpr Bytes kRule{kGi};
constexpr Bytes in_mebibytes(std::int64_t count) {
  return Bytes{count * kMi};
}

struct StepCase {
  const char* name;
  ConvergenceSnapshot snapshot;
  ConvergenceStep want;
};

void expect_steps(const std::vector<StepCase>& rows) {
  for (const StepCase& row : rows) {
    SCOPED_TRACE(row.name);
    const ConvergenceStep step = decide_convergence(row.snapshot);
    EXPECT_EQ(step.action, row.want.action);
    EXPECT_EQ(step.amount, row.want.amount);
  }
}

/// The margin above usage is 16 MiB.
TEST(DecideConvergence, LowersWhatUsageHasFreed) {
  expect_steps({
      {"AtTheRule", {.goal = kRule, .limit = kRule, .usage = kRule}, {}},
      {"BelowTheRule", {.goal = kRule, .limit = in_mebibytes(512), .usage = in_mebibytes(512)}, {}},
      {"AMarginBelowTheRule",
       {.goal = kRule, .limit = in_mebibytes(1025), .usage = in_mebibytes(1008)},
       {.action = Action::kLower, .amount = kRule}},
      {"FarBelowTheRule",
       {.goal = kRule, .limit = in_mebibytes(4096), .usage = in_mebibytes(10)},
       {.action = Action::kLower, .amount = kRule}},
      {"UsageHasFallen",
       {.goal = kRule, .limit = in_mebibytes(3000), .usage = in_mebibytes(2000)},
       {.action = Action::kLower, .amount = in_mebibytes(2016)}},
      {"InAPause",
       {.goal = kRule, .limit = in_mebibytes(3000), .usage = in_mebibytes(2000), .pauses = true},
       {.action = Action::kLower, .amount = in_mebibytes(2016)}},
      {"UnderPressure",
       {.goal = kRule,
        .limit = in_mebibytes(3000),
        .usage = in_mebibytes(2000),
        .refaulted = in_mebibytes(100)},
       {.action = Action::kLower, .amount = in_mebibytes(2016)}},
      {"ByTooLittle",
       {.goal = kRule, .limit = Bytes{2017 * kMi - 4096}, .usage = in_mebibytes(2000)},
       {.action = Action::kWait}},
      {"WithoutALimit",
       {.goal = kRule, .usage = in_mebibytes(2000)},
       {.action = Action::kLower, .amount = in_mebibytes(2016)}},
  });
}

ConvergenceSnapshot full_tier(Bytes usage) {
  return {.goal = kRule, .limit = usage, .usage = usage, .reclaims = true};
}

TEST(DecideConvergence, ReclaimsOfAFullTier) {
  expect_steps({
      {"AStep",
       full_tier(in_mebibytes(2000)),
       {.action = Action::kReclaim, .amount = in_mebibytes(64)}},
      // To a margin below the rule.
      {"TheRest",
       full_tier(in_mebibytes(1034)),
       {.action = Action::kReclaim, .amount = in_mebibytes(26)}},
      {"InTheMargin",
       {.goal = kRule, .limit = in_mebibytes(1030), .usage = in_mebibytes(1020), .reclaims = true},
       {.action = Action::kReclaim, .amount = in_mebibytes(12)}},
  });
}

TEST(DecideConvergence, BacksOffUnderPressure) {
  const auto with = [](Bytes refaulted, std::int64_t waited, std::int64_t elapsed) {
    ConvergenceSnapshot snapshot = full_tier(in_mebibytes(2000));
    snapshot.refaulted = refaulted;
    snapshot.waited = Micros{waited};
    snapshot.elapsed = Micros{elapsed};
    return snapshot;
  };
  const ConvergenceStep reclaim{.action = Action::kReclaim, .amount = in_mebibytes(64)};
  ConvergenceSnapshot paused = full_tier(in_mebibytes(2000));
  paused.pauses = true;
  expect_steps({
      {"SomeRefaults", with(in_mebibytes(4), 0, 20'000), reclaim},
      {"Refaults", with(Bytes{4 * kMi + 4096}, 0, 20'000), {.action = Action::kWait}},
      {"SomeWaiting", with({}, 1'000'000, 10'000'000), reclaim},
      {"Waiting", with({}, 1'000'001, 10'000'000), {.action = Action::kWait}},
      // The kernel tells of two seconds at once.
      {"SomeWaitingInTwoSeconds", with({}, 200'000, 20'000), reclaim},
      {"WaitingInTwoSeconds", with({}, 200'001, 20'000), {.action = Action::kWait}},
      {"InAPause", paused, {.action = Action::kWait}},
  });
}

/// cgroup v1, and v2 before Linux 5.19: the latter would kill for a limit below usage, and has no
/// page cache in its snapshot.
TEST(DecideConvergence, CutsCleanPageCacheWithoutMemoryReclaim) {
  const auto with = [](Bytes usage, Bytes clean_cache) {
    return ConvergenceSnapshot{
        .goal = kRule, .limit = usage, .usage = usage, .clean_cache = clean_cache};
  };
  ConvergenceSnapshot suffering = with(in_mebibytes(2000), in_mebibytes(500));
  suffering.refaulted = in_mebibytes(5);
  ConvergenceSnapshot refused = with(in_mebibytes(2000), in_mebibytes(20));
  refused.cut = in_mebibytes(4);
  expect_steps({
      {"AStep",
       with(in_mebibytes(2000), in_mebibytes(500)),
       {.action = Action::kLower, .amount = in_mebibytes(1984)}},
      {"TheRest",
       with(in_mebibytes(1030), in_mebibytes(32)),
       {.action = Action::kLower, .amount = kRule}},
      {"AMarginStays", with(in_mebibytes(2000), Bytes{32 * kMi - 4096}), {.action = Action::kWait}},
      {"NoPageCache", with(in_mebibytes(2000), {}), {.action = Action::kWait}},
      {"UnderPressure", suffering, {.action = Action::kWait}},
      {"LessAfterARefusal", refused, {.action = Action::kLower, .amount = in_mebibytes(1996)}},
  });
}

TEST(NextPause, DoublesUpToEightSeconds) {
  EXPECT_EQ(next_pause(0), 1);
  EXPECT_EQ(next_pause(1), 2);
  EXPECT_EQ(next_pause(2), 4);
  EXPECT_EQ(next_pause(4), 8);
  EXPECT_EQ(next_pause(8), 8);
}

TEST(NextCut, IsAQuarterAfterARefusalAndTwiceAsMuchOtherwise) {
  EXPECT_EQ(next_cut(in_mebibytes(16), true), in_mebibytes(4));
  EXPECT_EQ(next_cut(in_mebibytes(4), true), in_mebibytes(1));
  EXPECT_EQ(next_cut(in_mebibytes(1), true), in_mebibytes(1));
  EXPECT_EQ(next_cut(in_mebibytes(1), false), in_mebibytes(2));
  EXPECT_EQ(next_cut(in_mebibytes(16), false), in_mebibytes(16));
}

TEST(GapOfLimit, CountsFromTheRuleOrTheFloor) {
  const Bytes floor = in_mebibytes(64);
  EXPECT_EQ(gap_of_limit(in_mebibytes(1100), kRule, floor), in_mebibytes(76));
  EXPECT_EQ(gap_of_limit(in_mebibytes(1000), kRule, floor), Bytes{0});
  EXPECT_EQ(gap_of_limit(in_mebibytes(64), Bytes{0}, floor), Bytes{0});
  EXPECT_EQ(gap_of_limit(in_mebibytes(80), Bytes{0}, floor), in_mebibytes(16));
}

TEST(HeldLimits, AreThoseAboveTheRuleFromTheInnermost) {
  Settings settings;
  settings.tier_memory_floor = in_mebibytes(64);
  const TierValues wanted{.burstable = {.memory_limit = in_mebibytes(200)},
                          .besteffort = {.memory_limit = Bytes{0}},
                          .root = {.memory_limit = in_mebibytes(300)}};
  EXPECT_THAT(held_limits("/kubepods", wanted,
                          {.burstable = {.memory_limit = in_mebibytes(200)},
                           .besteffort = {.memory_limit = in_mebibytes(64)},
                           .root = {.memory_limit = in_mebibytes(300)}},
                          settings),
              IsEmpty());
  EXPECT_THAT(held_limits("/kubepods", wanted,
                          {.burstable = {.memory_limit = in_mebibytes(216)},
                           .besteffort = {.memory_limit = in_mebibytes(80)},
                           .root = {.memory_limit = in_mebibytes(316)}},
                          settings),
              ElementsAre(HeldLimit{"/kubepods/besteffort", in_mebibytes(64), in_mebibytes(80)},
                          HeldLimit{"/kubepods/burstable", in_mebibytes(200), in_mebibytes(216)},
                          HeldLimit{"/kubepods", in_mebibytes(300), in_mebibytes(316)}));
  // A reservation that is turned off, and limits that the transaction leaves alone.
  EXPECT_THAT(held_limits("/kubepods", {},
                          {.burstable = {.memory_limit = Bytes{-1}}, .besteffort = {}}, settings),
              IsEmpty());
}

}  // namespace
}  // namespace podqos::core
