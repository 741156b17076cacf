#pragma once

#include "common/core/pod_config.h"

namespace podqos::core {

struct ContainerMemoryQosParams {
  bool enforce_memory_qos = false;
  MemoryReservationPolicy reservation_policy = MemoryReservationPolicy::kNone;
  double throttling_factor = 0.9;
  Bytes node_allocatable_memory{0};
  Bytes page_size{4096};
  bool limited_swap = false;  ///< swapBehavior LimitedSwap; otherwise NoSwap
  bool swap_controller_available = false;
  bool group_oom_kill = false;  ///< the opposite of singleProcessOOMKill
  Bytes node_memory{0};
  Bytes swap_capacity{0};
};

/// memory.min, memory.low, memory.high, memory.swap.max and memory.oom.group of one container
/// (cgroup v2 "unified" values). memory.high and the swap share are computed in float64 exactly as
/// upstream.
/// @note pkg/kubelet/kuberuntime/kuberuntime_container_linux.go; KEP-2570.
[[nodiscard]] UnifiedValues container_unified_values(const Pod& pod, QosClass qos_class,
                                                     const Container& container,
                                                     const ContainerMemoryQosParams& params);

}  // namespace podqos::core
