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

/// Values for one container, from its pod's record; unknown containers get none, and none in an
/// adopted pod, whatever annotations or settings say: they are its kubelet's. Without `unified`.
[[nodiscard]] Result<CgroupValues> container_values(const PodRecord& record,
                                                    const std::string& name,
                                                    const Settings& settings);

/// The `unified` values that a kubelet asks for on cgroup v2 for each container: memory.swap.max
/// and memory.oom.group, as far as `params` ask for them. None for a container that neither its
/// own `claim` nor its pod's describes, whatever the pod's other containers say, and none in an
/// adopted pod, whose kubelet has its own settings for them. Of the node's swap a pod is given its
/// part as far as its memory request was granted.
[[nodiscard]] UnifiedValues container_unified(const PodRecord& record, const PodClaim& claim,
                                              const std::string& name,
                                              const ContainerMemoryParams& params);

/// What of these values the settings ask for, on a node of this capacity that has these files.
[[nodiscard]] ContainerMemoryParams container_memory_params(const Settings& settings,
                                                            const NodeCapacity& capacity,
                                                            const MemoryFiles& files);

/// The container-level values that the engine left unset, restricted to controllers that the layout
/// has.
[[nodiscard]] CgroupValues missing_values(const CgroupValues& wanted, const EngineResources& engine,
                                          const CgroupLayout& layout);

/// What to change in the container's config.json so that it lands in `cgroup` with its values.
[[nodiscard]] ConfigEdit config_edit(const std::string& cgroup, const CgroupValues& missing,
                                     std::optional<int> oom_score_adj);

}  // namespace podqos::core
