#include "common/core/kubernetes/eviction_order.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/core/kubernetes/pod_resources.h"
#include "tests/unit/core/byte_units.h"

namespace podqos::core {
namespace {

using byte_units::kGi;
using byte_units::kMi;
using ::testing::ElementsAre;

struct RankedPod {
  std::string name;
  MemoryUse use;
};

MemoryUse use_of(std::int64_t request, std::int64_t usage, std::int64_t priority = 0) {
  return {.request = Bytes{request}, .usage = Bytes{usage}, .priority = priority};
}

std::vector<std::string> ranked(std::vector<RankedPod> pods) {
  std::ranges::stable_sort(pods, [](const RankedPod& one, const RankedPod& other) {
    return is_evicted_before(one.use, other.use);
  });
  std::vector<std::string> names;
  for (const RankedPod& pod : pods)
    names.push_back(pod.name);
  return names;
}

constexpr std::int64_t kLowPriority = -1;  // those of pkg/kubelet/eviction/helpers_test.go
constexpr std::int64_t kHighPriority = 1;

// The pods of TestOrderedByPriorityMemory, in another order than the expected one.
TEST(IsEvictedBefore, RanksAsTheKubeletByPriorityAndMemory) {
  EXPECT_THAT(ranked({{"pod8", use_of(kGi, 200 * kMi, kHighPriority)},
                      {"pod7", use_of(kGi, 900 * kMi, kHighPriority)},
                      {"pod6", use_of(kGi, 200 * kMi, kLowPriority)},
                      {"pod5", use_of(kGi, 900 * kMi, kLowPriority)},
                      {"pod4", use_of(100 * kMi, 200 * kMi, kHighPriority)},
                      {"pod3", use_of(100 * kMi, 900 * kMi, kHighPriority)},
                      {"pod2", use_of(100 * kMi, 200 * kMi, kLowPriority)},
                      {"pod1", use_of(100 * kMi, 900 * kMi, kLowPriority)}}),
              ElementsAre("pod1", "pod2", "pod3", "pod4", "pod5", "pod6", "pod7", "pod8"));
}

// TestOrderedByMemory.
TEST(IsEvictedBefore, RanksAsTheKubeletByMemory) {
  EXPECT_THAT(ranked({{"pod1", use_of(0, 500 * kMi)},
                      {"pod2", use_of(0, 300 * kMi)},
                      {"pod3", use_of(100 * kMi, 800 * kMi)},
                      {"pod4", use_of(100 * kMi, 300 * kMi)},
                      {"pod5", use_of(kGi, 800 * kMi)},
                      {"pod6", use_of(kGi, 200 * kMi)}}),
              ElementsAre("pod3", "pod1", "pod2", "pod4", "pod5", "pod6"));
}

// TestOrderedByExceedsRequestMemory: the lower priority does not count before the request.
TEST(IsEvictedBefore, RanksAsTheKubeletByWhetherTheRequestIsExceeded) {
  EXPECT_THAT(ranked({{"below-requests", use_of(200 * kMi, 199 * kMi, -1)},
                      {"exceeds-requests", use_of(100 * kMi, 101 * kMi, 1)}}),
              ElementsAre("exceeds-requests", "below-requests"));
}

// pkg/kubelet/eviction/helpers.go exceedMemoryRequests: a pod that uses all of its request does
// not.
TEST(IsEvictedBefore, CountsTheFirstByteAboveTheRequest) {
  const MemoryUse at_request = use_of(kMi, kMi, kLowPriority);
  const MemoryUse above_request = use_of(kMi, kMi + 1, kHighPriority);
  EXPECT_TRUE(is_evicted_before(above_request, at_request));
  EXPECT_FALSE(is_evicted_before(at_request, above_request));
}

TEST(FindVictim, TakesTheFirstInTheKubeletsOrder) {
  const std::vector<MemoryUse> pods{use_of(0, 10 * kMi), use_of(50 * kMi, 90 * kMi),
                                    use_of(0, 40 * kMi)};
  EXPECT_EQ(find_victim(pods), std::optional<std::size_t>{1});
  EXPECT_EQ(find_victim(std::vector{use_of(0, 1)}), std::optional<std::size_t>{0});
}

TEST(FindVictim, PassesOverPodsWithinTheirRequests) {
  EXPECT_EQ(find_victim(std::vector{use_of(kGi, 900 * kMi, -5), use_of(kMi, kMi)}), std::nullopt);
  EXPECT_EQ(find_victim(std::vector{use_of(kGi, 900 * kMi, -5), use_of(kMi, kMi + 1, 7)}),
            std::optional<std::size_t>{1});
}

// pkg/kubelet/eviction/eviction_manager.go evictPod: "cannot evict a critical pod".
TEST(FindVictim, PassesOverCriticalPods) {
  MemoryUse critical = use_of(0, kGi);
  critical.critical = true;
  EXPECT_EQ(find_victim(std::vector{critical, use_of(0, kMi)}), std::optional<std::size_t>{1});
  EXPECT_EQ(find_victim(std::vector{critical}), std::nullopt);
}

TEST(FindVictim, FindsNoneAmongNone) {
  EXPECT_EQ(find_victim({}), std::nullopt);
}

// pkg/kubelet/types/pod_update.go IsCriticalPod, IsCriticalPodBasedOnPriority.
TEST(IsCritical, GoesByPriorityAndSource) {
  Pod pod;
  EXPECT_FALSE(is_critical(pod));
  pod.priority = 1'999'999'999;
  EXPECT_FALSE(is_critical(pod));
  pod.priority = 2'000'000'000;
  EXPECT_TRUE(is_critical(pod));
  pod.priority.reset();
  pod.is_static = true;
  EXPECT_TRUE(is_critical(pod));
}

TEST(PressurePeriod, IsOverAfterItsWholeTime) {
  PressurePeriod period;
  const MemoryPressure threshold{.percent = 60, .seconds = 30};
  EXPECT_FALSE(period.observe(60, BootSeconds{100}, threshold));
  EXPECT_FALSE(period.observe(99, BootSeconds{129}, threshold));
  EXPECT_TRUE(period.observe(60, BootSeconds{130}, threshold));
  EXPECT_TRUE(period.observe(61, BootSeconds{131}, threshold));
}

TEST(PressurePeriod, BeginsAnewAfterABreak) {
  const MemoryPressure threshold{.percent = 60, .seconds = 30};
  for (const std::optional<std::int64_t> pause : {std::optional<std::int64_t>{59}, {}}) {
    PressurePeriod period;
    EXPECT_FALSE(period.observe(60, BootSeconds{100}, threshold));
    EXPECT_FALSE(period.observe(pause, BootSeconds{129}, threshold));
    EXPECT_FALSE(period.observe(60, BootSeconds{131}, threshold));
    EXPECT_FALSE(period.observe(60, BootSeconds{160}, threshold));
    EXPECT_TRUE(period.observe(60, BootSeconds{161}, threshold));
  }
}

TEST(PressurePeriod, BeginsAnewAfterAnEviction) {
  PressurePeriod period;
  const MemoryPressure threshold{.percent = 1, .seconds = 1};
  EXPECT_FALSE(period.observe(5, BootSeconds{1}, threshold));
  EXPECT_TRUE(period.observe(5, BootSeconds{2}, threshold));
  period.end();
  EXPECT_FALSE(period.observe(5, BootSeconds{3}, threshold));
  EXPECT_TRUE(period.observe(5, BootSeconds{4}, threshold));
}

}  // namespace
}  // namespace podqos::core
