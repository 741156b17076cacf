#pragma once

#include "common/core/pod_config.h"

namespace podqos::core {

/// Node settings for container_cgroup_values().
struct ContainerConfigParams {
  bool enforce_cpu_limits = true;      ///< cpuCFSQuota; false: no quota and no period
  Micros cpu_period = kDefaultPeriod;  ///< cpuCFSQuotaPeriod
};

/// Values of a container's cgroup: shares from the CPU request (by default the limit), quota and
/// period from the CPU limit, memory limit and huge pages. A container without a limit gets the
/// pod-level one. Quota 0 and memory limit 0 mean "no limit", as in CRI's LinuxContainerResources.
/// @return kInvalidArgument for a huge page resource without a page size
/// @note pkg/kubelet/kuberuntime/kuberuntime_container_linux.go calculateLinuxResources.
[[nodiscard]] Result<CgroupValues> container_cgroup_values(const Pod& pod,
                                                           const Container& container,
                                                           const ContainerConfigParams& params);

}  // namespace podqos::core
