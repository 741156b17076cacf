#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/core/pod_values.h"
#include "tests/unit/core/byte_units.h"
#include "tests/unit/core/pod_records.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using byte_units::kMi;
using pod_text::container;
using pod_text::limited;
using pod_text::list;
using pod_text::record_of;

CgroupValues container_values_of(const PodRecord& record, const std::string& name,
                                 const Settings& settings = {}) {
  auto values = container_values(record, name, settings);
  if (values) return std::move(*values);
  ADD_FAILURE() << values.error().message;
  return {};
}

TEST(ContainerValues, FollowTheSpec) {
  Settings settings;
  settings.pod_pids_limit = 77;
  const CgroupValues values =
      container_values_of(record_of({limited("a", "1", "64Mi")}, true), "a", settings);
  EXPECT_EQ(values.cpu_shares, CpuShares{1024});
  EXPECT_EQ(values.cpu_quota, Micros{100'000});
  EXPECT_EQ(values.memory_limit, Bytes{64 * kMi});
  EXPECT_EQ(values.pids_limit, 77);
}

TEST(ContainerValues, AreNoneForAnUnknownContainer) {
  EXPECT_EQ(container_values_of(record_of({limited("a", "1", "64Mi")}, true), "b"), CgroupValues{});
}

TEST(ContainerValues, AreNoneWhereTheEngineHasSetThemAll) {
  PodRecord record = record_of({limited("a", "1", "64Mi")});
  record.class_source = ClassSource::kInference;
  EXPECT_EQ(container_values_of(record, "a"), CgroupValues{});
}

TEST(ContainerValues, FollowASpecThatHasCompletedAnInferredPod) {
  PodRecord record = record_of({limited("a", "1", "64Mi")}, true);
  record.class_source = ClassSource::kInference;
  EXPECT_EQ(container_values_of(record, "a").memory_limit, Bytes{64 * kMi});
}

TEST(ContainerValues, FindInitAndEphemeralContainers) {
  PodRecord record = record_of({}, true);
  record.pod.init_containers = {pod_text::init("i", list({{"cpu", "1"}}))};
  record.pod.ephemeral_containers = {container("e", {}, {}, ContainerKind::kEphemeral)};
  EXPECT_EQ(container_values_of(record, "i").cpu_shares, CpuShares{1024});
  EXPECT_EQ(container_values_of(record, "e").cpu_shares, CpuShares{2});
}

constexpr MemoryFiles kBothFiles{.swap_max = true, .oom_group = true};
constexpr NodeCapacity kSwappingNode{
    .memory = Bytes{8192 * kMi}, .cpu = MilliCpu{1000}, .swap = Bytes{4096 * kMi}};

PodClaim short_forms() {
  PodClaim claim;
  claim.source = ClassSource::kShortForms;
  return claim;
}

UnifiedValues unified_of(const PodRecord& record, const Settings& settings = {},
                         const MemoryFiles& files = kBothFiles, const std::string& name = "a") {
  return container_unified(record, short_forms(), name,
                           container_memory_params(settings, kSwappingNode, files));
}

PodRecord burstable_record() {
  return record_of({container("a", list({{"memory", "1Gi"}}), list({{"memory", "2Gi"}}))}, true);
}

// KubeletConfiguration: memorySwap.swapBehavior NoSwap and singleProcessOOMKill false are the
// defaults on cgroup v2.
TEST(ContainerUnified, IsWhatAKubeletAsksForByDefault) {
  EXPECT_EQ(unified_of(burstable_record()),
            (UnifiedValues{{"memory.oom.group", "1"}, {"memory.swap.max", "0"}}));
}

TEST(ContainerUnified, IsOnlyWhatTheMachineHasFilesFor) {
  EXPECT_EQ(unified_of(burstable_record(), {}, {.swap_max = true}),
            (UnifiedValues{{"memory.swap.max", "0"}}));
  EXPECT_EQ(unified_of(burstable_record(), {}, {.oom_group = true}),
            (UnifiedValues{{"memory.oom.group", "1"}}));
  EXPECT_EQ(unified_of(burstable_record(), {}, {}), UnifiedValues{});
}

TEST(ContainerUnified, FollowsTheSettings) {
  Settings settings;
  settings.swap_behavior = SwapBehavior::kLimitedSwap;
  // KEP-2400: 1Gi of 8Gi, so an eighth of the 4Gi.
  EXPECT_EQ(unified_of(burstable_record(), settings),
            (UnifiedValues{{"memory.oom.group", "1"}, {"memory.swap.max", "536870912"}}));
  settings.swap_behavior.reset();
  EXPECT_EQ(unified_of(burstable_record(), settings), (UnifiedValues{{"memory.oom.group", "1"}}));
  settings.single_process_oom_kill = true;
  EXPECT_EQ(unified_of(burstable_record(), settings), UnifiedValues{});
}

TEST(ContainerUnified, IsNothingForContainersThatNobodyHasDescribed) {
  EXPECT_EQ(unified_of(burstable_record(), {}, kBothFiles, "other"), UnifiedValues{});
  PodRecord inferred = burstable_record();
  inferred.complete = false;
  inferred.class_source = ClassSource::kInference;
  EXPECT_EQ(unified_of(inferred), UnifiedValues{});
}

// In whichever order they come.
TEST(ContainerUnified, IsNothingForAContainerBesideOneThatIsDescribed) {
  PodRecord partial = burstable_record();
  partial.complete = false;
  const PodClaim inferred;
  const ContainerMemoryParams params = container_memory_params({}, kSwappingNode, kBothFiles);
  EXPECT_EQ(container_unified(partial, inferred, "a", params), UnifiedValues{});
  EXPECT_EQ(container_unified(burstable_record(), inferred, "a", params),
            unified_of(burstable_record()))
      << "podqos.io/pod describes all of them";
}

TEST(ContainerUnified, SharesSwapAsFarAsTheRequestWasGranted) {
  Settings settings;
  settings.swap_behavior = SwapBehavior::kLimitedSwap;
  settings.single_process_oom_kill = true;
  PodRecord record = burstable_record();
  record.granted.memory = Bytes{256 * kMi};
  EXPECT_EQ(unified_of(record, settings), (UnifiedValues{{"memory.swap.max", "134217728"}}));
  record.granted.memory = Bytes{0};
  EXPECT_EQ(unified_of(record, settings), (UnifiedValues{{"memory.swap.max", "0"}}));
}

// Its kubelet may have been told singleProcessOOMKill: true.
TEST(ContainerUnified, IsNothingInAKubeletsPod) {
  PodRecord adopted = burstable_record();
  adopted.adopted = true;
  EXPECT_EQ(unified_of(adopted), UnifiedValues{});
}

}  // namespace
}  // namespace podqos::core
