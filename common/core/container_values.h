#pragma once

#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/core/container_facts.h"
#include "common/core/container_memory.h"
#include "common/core/layout.h"
#include "common/core/policy.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// Values of a container's cgroup, from its pod's record and podPidsLimit; `unified` stays empty.
/// Empty for a container whose resources are not described, or were inferred from the engine's own
/// values, and for an adopted pod, whose kubelet sets them.
/// @return the errors of container_cgroup_values() and check_kernel_bounds()
[[nodiscard]] Result<CgroupValues> container_values(const PodRecord& record,
                                                    const std::string& name,
                                                    const Settings& settings);

/// The `unified` values that a kubelet sets on cgroup v2 for each container: memory.swap.max and
/// memory.oom.group, as far as `params` ask for them. Empty in the same cases as above, and if only
/// the claims of other containers describe the pod. The swap share is scaled by the part of the
/// pod's memory request that was granted.
[[nodiscard]] UnifiedValues container_unified(const PodRecord& record, const PodClaim& claim,
                                              const std::string& name,
                                              const ContainerMemoryParams& params);

/// The parameters for these settings, this node's capacity and the files that its kernel has.
[[nodiscard]] ContainerMemoryParams container_memory_params(const Settings& settings,
                                                            const NodeCapacity& capacity,
                                                            const MemoryFiles& files);

/// The wanted values that the engine left unset, restricted to what this machine's controllers and
/// its runtime accept. Values of the engine are never replaced. A quota is converted to the
/// engine's period if it has set one.
[[nodiscard]] CgroupValues missing_values(const CgroupValues& wanted, const EngineResources& engine,
                                          const CgroupLayout& layout);

/// The edit of config.json that creates the container in `cgroup` with these values.
[[nodiscard]] ConfigEdit config_edit(const std::string& cgroup, const CgroupValues& missing,
                                     std::optional<int> oom_score_adj);

}  // namespace podqos::core
