#include <gtest/gtest.h>

#include "common/core/cgroup_values.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core {
namespace {

using namespace pod_text;
using Unified = UnifiedValues;

Unified unified(const Container& container, QosClass qos_class,
                const ContainerMemoryParams& params) {
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
  const ContainerMemoryParams params{.limited_swap = row.limited,
                                     .swap_controller_available = true,
                                     .node_memory = Bytes{8LL << 30U},
                                     .swap_capacity = Bytes{4LL << 30U}};
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
