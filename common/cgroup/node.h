#pragma once

#include <cstdint>
#include <optional>

#include "common/base/error.h"
#include "common/core/cgroups/naming.h"
#include "common/core/settings.h"

namespace podqos::cgroup {

/// True if this process manages the host's cgroups: it is root in the initial user namespace.
/// Otherwise all programs do nothing: they read no state and write nothing.
/// @note The initial user namespace has a fixed inode number, include/linux/proc_ns.h.
[[nodiscard]] bool owns_host();

/// The driver that engines use by default: systemd if it is the init system, else cgroupfs.
[[nodiscard]] core::Driver machine_driver();

/// The node's memory, swap and CPU: set by the configuration, or measured. Of memory that the
/// configuration sets, nothing is taken for huge pages. Swap is only read for
/// the swap behavior LimitedSwap, and processes by with_pids().
[[nodiscard]] Result<core::NodeCapacity> node_capacity(const core::Settings& settings);
/// The capacity with the machine's processes, which few events need; 0 if the kernel does not tell.
[[nodiscard]] core::NodeCapacity with_pids(core::NodeCapacity capacity);

/// How many processes the kernel has ended for want of memory since it was booted, whatever their
/// cgroup; nullopt before Linux 4.13.
/// @note proc_vmstat(5), oom_kill; mm/oom_kill.c
[[nodiscard]] std::optional<std::int64_t> node_oom_kills();
/// The end of the kernel's log, at most 256 KiB of it; nullopt if it cannot be read: without
/// CAP_SYSLOG where kernel.dmesg_restrict is set, or if a filter of system calls forbids it.
/// @note syslog(2), SYSLOG_ACTION_READ_ALL
[[nodiscard]] std::optional<std::string> kernel_log();

/// The oom_score_adj nearest to `wanted`, in [-1000, 1000], that this process can set, and so the
/// runtime that shares its privileges. Without CAP_SYS_RESOURCE a score cannot be lowered below the
/// process's own, and the runtime would fail the container.
/// @note fs/proc/base.c __set_oom_adj.
[[nodiscard]] int reachable_oom_score(int wanted);

}  // namespace podqos::cgroup
