#pragma once

#include "common/base/error.h"
#include "common/core/driver.h"
#include "common/core/policy.h"
#include "common/core/settings.h"

namespace podqos::app {

/// Does this process own the host's cgroups: is it root in the initial user namespace? Everywhere
/// else every program passes through: no state, no write.
/// @note The initial user namespace has a fixed inode number, include/linux/proc_ns.h.
[[nodiscard]] bool owns_host();

/// What the node's engines use unless they are told otherwise: systemd where it runs.
[[nodiscard]] core::Driver machine_driver();

/// The node's capacity: pinned by the configuration, else measured.
[[nodiscard]] Result<core::NodeCapacity> node_capacity(const core::Settings& settings);

/// The OOM score nearest to `wanted` that this process, and so the runtime that shares its
/// privileges, can set: without CAP_SYS_RESOURCE a score cannot be lowered below the process's own,
/// and a runtime that is asked to do so refuses the container.
/// @note fs/proc/base.c __set_oom_adj.
[[nodiscard]] int reachable_oom_score(int wanted);

}  // namespace podqos::app
