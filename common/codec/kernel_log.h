#pragma once

#include <string_view>
#include <vector>

#include "common/core/events/oom_kill.h"

namespace podqos::codec {

/// Finds the kills in the kernel's log, oldest first. Lines that are not the kernel's, have no time
/// (printk.time=0), or name anything twice, as a cgroup or process may that calls itself so, are
/// passed over.
/// @param log  as SYSLOG_ACTION_READ_ALL of syslog(2) returns it
/// @note mm/oom_kill.c dump_oom_victim, __oom_kill_process; mm/memcontrol.c
///       mem_cgroup_print_oom_context, mem_cgroup_print_oom_meminfo
[[nodiscard]] std::vector<core::OomKill> parse_oom_kills(std::string_view log);

}  // namespace podqos::codec
