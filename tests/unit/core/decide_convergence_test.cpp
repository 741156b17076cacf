#include "common/core/events/decide_convergence.h"

#include <cstdint>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/pods/counting.h"
#include "tests/unit/core/byte_units.h"

namespace podqos::core {
namespace {

using byte_units::kGi;
using byte_units::kMi;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
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
      {"UnderPressure",
       {.goal = kRule,
        .limit = in_mebibytes(3000),
        .usage = in_mebibytes(2000),
        .waiting_percent = 100},
       {.action = Action::kLower, .amount = in_mebibytes(2016)}},
      {"ByTooLittle",
       {.goal = kRule, .limit = Bytes{2017 * kMi - 4096}, .usage = in_mebibytes(2000)},
       {.action = Action::kWait}},
      {"ByJustEnough",
       {.goal = kRule, .limit = in_mebibytes(2017), .usage = in_mebibytes(2000)},
       {.action = Action::kLower, .amount = in_mebibytes(2016)}},
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

TEST(DecideConvergence, PausesUnderPressure) {
  ConvergenceSnapshot some = full_tier(in_mebibytes(2000));
  some.waiting_percent = 10;
  ConvergenceSnapshot more = some;
  more.waiting_percent = 11;
  expect_steps({
      {"SomeWaiting", some, {.action = Action::kReclaim, .amount = in_mebibytes(64)}},
      {"Waiting", more, {.action = Action::kWait}},
  });
}

/// cgroup v1, and v2 before Linux 5.19: the latter would kill for a limit below usage, and has no
/// page cache in its snapshot.
TEST(DecideConvergence, CutsCleanPageCacheWithoutMemoryReclaim) {
  const auto with = [](Bytes usage, Bytes clean_cache) {
    return ConvergenceSnapshot{
        .goal = kRule, .limit = usage, .usage = usage, .clean_cache = clean_cache};
  };
  expect_steps({
      {"AStep",
       with(in_mebibytes(2000), in_mebibytes(500)),
       {.action = Action::kLower, .amount = in_mebibytes(1984)}},
      {"TheRest",
       with(in_mebibytes(1030), in_mebibytes(32)),
       {.action = Action::kLower, .amount = kRule}},
      {"AMarginStays", with(in_mebibytes(2000), Bytes{32 * kMi - 4096}), {.action = Action::kWait}},
      {"NoPageCache", with(in_mebibytes(2000), {}), {.action = Action::kWait}},
  });
}

/// A node of 1 GiB with pods in both trees: 100 MiB Guaranteed, 900 MiB Burstable.
NodeState node_with_pods() {
  NodeState node;
  for (const char* root : {"/kubepods", "/kubepods.slice"}) {
    node.trees.push_back({.kubepods = root});
    node.rows.push_back({.uid = {}, .tree = tree_key(root)});
  }
  node.sums.guaranteed = {.pods = 1, .cpu = {}, .memory = in_mebibytes(100)};
  node.sums.burstable = {.pods = 1, .cpu = {}, .memory = in_mebibytes(900)};
  node.trees[0].sums = node.sums;
  return node;
}
constexpr NodeCapacity kCapacity{.memory = Bytes{kGi}, .cpu = {}};

TEST(LimitRules, AreThoseOfAllTreesFromTheInnermost) {
  Settings settings;
  settings.reserve_memory_percent = 100;
  settings.tier_memory_floor = in_mebibytes(64);
  EXPECT_THAT(limit_rules(node_with_pods(), settings, kCapacity),
              ElementsAre(LimitRule{"/kubepods/besteffort", in_mebibytes(64)},
                          LimitRule{"/kubepods/burstable", in_mebibytes(924)},
                          LimitRule{"/kubepods", in_mebibytes(1024)},
                          LimitRule{"/kubepods.slice/kubepods-besteffort.slice", in_mebibytes(64)},
                          LimitRule{"/kubepods.slice/kubepods-burstable.slice", in_mebibytes(924)},
                          // Without what the other tree's pods request, or the floor.
                          LimitRule{"/kubepods.slice", in_mebibytes(64)}));
}

TEST(LimitRules, AreAbsentWhereNothingIsLimited) {
  Settings settings;
  const NodeState node = node_with_pods();
  EXPECT_THAT(limit_rules(node, settings, kCapacity), SizeIs(2)) << "the roots";
  settings.enforce_node_allocatable = false;
  EXPECT_THAT(limit_rules(node, settings, kCapacity), IsEmpty());
}

TEST(LimitRules, AreNotThoseOfATreeWithoutPods) {
  NodeState node = node_with_pods();
  node.rows.pop_back();
  EXPECT_THAT(limit_rules(node, Settings{}, kCapacity),
              ElementsAre(LimitRule{"/kubepods", in_mebibytes(1024)}));
}

}  // namespace
}  // namespace podqos::core
