#pragma once

#include "common/core/pod_config.h"

namespace podqos::core {

struct ContainerMemoryParams {
  bool limited_swap = false;  ///< swapBehavior LimitedSwap; otherwise NoSwap
  bool swap_controller_available = false;
  bool group_oom_kill = false;  ///< the opposite of singleProcessOOMKill
  Bytes node_memory{0};
  Bytes swap_capacity{0};
};

/// memory.swap.max and memory.oom.group of one container (cgroup v2 "unified" values). The swap
/// share is computed in float64 exactly as upstream.
/// @note pkg/kubelet/kuberuntime/kuberuntime_container_linux.go
[[nodiscard]] UnifiedValues container_unified_values(const Pod& pod, QosClass qos_class,
                                                     const Container& container,
                                                     const ContainerMemoryParams& params);

}  // namespace podqos::core
