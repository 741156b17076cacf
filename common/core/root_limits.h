#pragma once

#include "common/core/pod_config.h"
#include "common/core/policy.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// The limits of a tree's root, by enforceNodeAllocatable: memory that is allocatable less what
/// pods outside the tree request, at least 0, without regard to usage; and the machine's capacity
/// of processes. Both are absent where the setting is off, and each where its capacity is not
/// known.
/// @note pkg/kubelet/cm/node_container_manager_linux.go enforceNodeAllocatableCgroups,
///       getNodeAllocatableInternalAbsolute; the kubelet does not know of pods outside its tree.
[[nodiscard]] CgroupValues root_limits(const TiersRecord& tiers, const TreeRecord& tree,
                                       const Settings& settings, const NodeCapacity& capacity);

}  // namespace podqos::core
