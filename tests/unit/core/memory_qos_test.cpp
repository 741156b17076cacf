#include "common/core/memory_qos.h"

#include <gtest/gtest.h>

#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using namespace pod_text;
using Unified = UnifiedValues;

constexpr ContainerMemoryQosParams kTiered{
    .enforce_memory_qos = true,
    .reservation_policy = MemoryReservationPolicy::kTieredReservation,
    .throttling_factor = 0.9,
    .node_allocatable_memory = Bytes{7LL << 30U},
    .page_size = Bytes{4096},
    .limited_swap = false,
    .swap_controller_available = false,
    .node_memory = Bytes{8LL << 30U},
    .swap_capacity = Bytes{4LL << 30U},
};

ResourceList memory(const char* text) {
  return list({{"memory", text}});
}

Unified unified(const Container& container, QosClass qos_class,
                const ContainerMemoryQosParams& params = kTiered) {
  return container_unified_values(pod({container}), qos_class, container, params);
}

TEST(ContainerUnifiedValues, NothingIsWrittenUnlessSwitchedOn) {
  EXPECT_EQ(unified(container("a", memory("1Gi")), QosClass::kBurstable, {}), Unified{});
}

// pkg/kubelet/kuberuntime/kuberuntime_container_linux.go generateLinuxContainerResources: what a
// kubelet sets without any feature gate.
TEST(ContainerUnifiedValues, AContainerEndsAsAWhole) {
  EXPECT_EQ(unified(container("a", memory("1Gi")), QosClass::kBurstable, {.group_oom_kill = true}),
            (Unified{{"memory.oom.group", "1"}}));
}

TEST(ContainerUnifiedValues, TheClassDecidesBetweenMinAndLow) {
  const auto full = container("a", memory("1Gi"), memory("1Gi"));
  EXPECT_EQ(unified(full, QosClass::kGuaranteed), (Unified{{"memory.min", "1073741824"}}));
  EXPECT_EQ(unified(full, QosClass::kBurstable), (Unified{{"memory.low", "1073741824"}}));
}

TEST(ContainerUnifiedValues, WithoutAReservationBothAreReset) {
  auto params = kTiered;
  params.reservation_policy = MemoryReservationPolicy::kNone;
  const auto full = container("a", memory("1Gi"), memory("1Gi"));
  EXPECT_EQ(unified(full, QosClass::kGuaranteed, params),
            (Unified{{"memory.min", "0"}, {"memory.low", "0"}}));
  // Nothing requested, nothing limited: equal, so no throttling either.
  EXPECT_EQ(unified(container("a", {}), QosClass::kBestEffort),
            (Unified{{"memory.min", "0"}, {"memory.low", "0"}}));
}

struct HighCase {
  const char* request;
  const char* limit;
  double factor;
  const char* high;  ///< "none": not written
};

TEST(ContainerUnifiedValues, HighLiesBetweenRequestAndLimitOnAPage) {
  for (const auto& [request, limit, factor, high] : {
           HighCase{"256Mi", "2Gi", 0.9, "1959575552"},
           HighCase{"1Gi", "2Gi", 0.5, "1610612736"},
           HighCase{"1Gi", "2Gi", 1.0, "2147483648"},
           // No limit: towards what the node can give.
           HighCase{"1Gi", "0", 0.9, "6871945216"},
           // Rounded down to a page it is not above the request.
           HighCase{"5000", "6000", 0.9, "none"},
           HighCase{"100Gi", "0", 0.9, "none"},
       }) {
    auto params = kTiered;
    params.throttling_factor = factor;
    const auto values =
        unified(container("a", memory(request), memory(limit)), QosClass::kBurstable, params);
    const auto found = values.find("memory.high");
    const auto written = found == values.end() ? std::string{"none"} : found->second;
    EXPECT_EQ(written, high) << request << " " << limit;
  }
}

TEST(ContainerUnifiedValues, WithoutALimitAndAKnownNodeThereIsNoHigh) {
  auto params = kTiered;
  params.node_allocatable_memory = Bytes{0};
  EXPECT_EQ(unified(container("a", memory("1Gi")), QosClass::kBurstable, params),
            (Unified{{"memory.low", "1073741824"}}));
}

struct SwapCase {
  const char* name;
  bool limited;
  QosClass qos_class;
  const char* request;
  const char* limit;
  std::optional<std::int64_t> priority;
  const char* swap;
};

class SwapMax : public testing::TestWithParam<SwapCase> {};

TEST_P(SwapMax, IsTheRequestsPartOfTheNodesSwapOrNothing) {
  const auto& row = GetParam();
  auto params = kTiered;
  params.enforce_memory_qos = false;
  params.swap_controller_available = true;
  params.limited_swap = row.limited;
  const auto subject = container("a", memory(row.request), memory(row.limit));
  auto owner = pod({subject});
  owner.priority = row.priority;
  EXPECT_EQ(container_unified_values(owner, row.qos_class, subject, params),
            (Unified{{"memory.swap.max", row.swap}}));
}

INSTANTIATE_TEST_SUITE_P(
    All, SwapMax,
    testing::Values(
        SwapCase{"Burstable", true, QosClass::kBurstable, "1Gi", "2Gi", {}, "536870912"},
        SwapCase{"NoSwap", false, QosClass::kBurstable, "1Gi", "2Gi", {}, "0"},
        SwapCase{"Guaranteed", true, QosClass::kGuaranteed, "1Gi", "2Gi", {}, "0"},
        SwapCase{"RequestIsLimit", true, QosClass::kBurstable, "1Gi", "1Gi", {}, "0"},
        SwapCase{"NoRequest", true, QosClass::kBurstable, "0", "2Gi", {}, "0"},
        SwapCase{"Critical", true, QosClass::kBurstable, "1Gi", "2Gi", 2'000'000'000, "0"},
        SwapCase{"MoreThanTheNode", true, QosClass::kBurstable, "9Gi", "10Gi", {}, "0"}),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace podqos::core
