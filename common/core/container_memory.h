#pragma once

#include "common/core/pod_config.h"

namespace podqos::core {

/// Node settings for container_unified_values().
struct ContainerMemoryParams {
  bool limited_swap = false;               ///< swapBehavior LimitedSwap; otherwise NoSwap
  bool swap_controller_available = false;  ///< the kernel has memory.swap.max
  bool group_oom_kill = false;             ///< the opposite of singleProcessOOMKill
  Bytes node_memory{0};                    ///< capacity of the machine
  Bytes swap_capacity{0};                  ///< swap to share between containers
};

/// memory.swap.max and memory.oom.group of one container (cgroup v2 "unified" values). With
/// LimitedSwap a container of a Burstable pod whose memory request and limit differ gets
/// trunc(request / node memory * swap); static and critical pods and all others get 0. The share is
/// computed in float64 as in the kubelet.
/// @note pkg/kubelet/kuberuntime/kuberuntime_container_linux.go
[[nodiscard]] UnifiedValues container_unified_values(const Pod& pod, QosClass qos_class,
                                                     const Container& container,
                                                     const ContainerMemoryParams& params);

}  // namespace podqos::core
