#pragma once

#include "common/core/pod_config.h"

namespace podqos::core {

struct ContainerConfigParams {
  bool enforce_cpu_limits = true;
  Micros cpu_period = kDefaultPeriod;
};

/// Container-level values: shares from the request (which defaults to the limit), quota and period
/// from the cpu limit, memory limit, huge pages. Quota 0 / memory limit 0 mean "no limit" as in
/// upstream's LinuxContainerResources.
/// @note pkg/kubelet/kuberuntime/kuberuntime_container_linux.go calculateLinuxResources.
[[nodiscard]] Result<CgroupValues> container_cgroup_values(const Pod& pod,
                                                           const Container& container,
                                                           const ContainerConfigParams& params);

}  // namespace podqos::core
