#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/units.h"
#include "common/core/record.h"

// By whose limit a process was OOM-killed, as the kernel itself logs it.
namespace podqos::core {

/// A process that the OOM killer has ended. Cgroups are absolute paths in the hierarchy of the
/// memory controller.
struct OomKill {
  std::int64_t at = 0;  ///< microseconds of the log's clock, which starts near 0 at boot
  Pid pid;              ///< in the initial pid namespace
  /// The process's; "" if the log does not name it: the kernel logs at most ten kills in five
  /// seconds with their cgroups.
  std::string cgroup = {};
  /// The one whose limit was met, "" of the node's memory; nullopt if the log does not name it.
  std::optional<std::string> limited = std::nullopt;
  std::optional<Bytes> limit = std::nullopt;  ///< of that cgroup then; nullopt if not logged
  friend bool operator==(const OomKill&, const OomKill&) = default;
};

/// Finds the kills in the kernel's log, oldest first. Lines that are not the kernel's, have no time
/// (printk.time=0), or name anything twice, as a cgroup or process may that calls itself so, are
/// passed over.
/// @param log  as SYSLOG_ACTION_READ_ALL of syslog(2) returns it
/// @note mm/oom_kill.c dump_oom_victim, __oom_kill_process; mm/memcontrol.c
///       mem_cgroup_print_oom_context, mem_cgroup_print_oom_meminfo
[[nodiscard]] std::vector<OomKill> parse_oom_kills(std::string_view log);

/// The container that a killed process belonged to; nullptr for a process of another pod, or none.
[[nodiscard]] const ContainerRecord* find_killed(const PodRecord& pod, const OomKill& kill);

/// "OOM-killed by the limit of tier besteffort (380Mi); its pod had used up to 371Mi".
/// @param limited, limit  of the kill
/// @param peak  the most memory that the pod has used; nullopt if it is not known
[[nodiscard]] std::string describe_oom_kill(const PodRecord& pod,
                                            const std::optional<std::string>& limited,
                                            std::optional<Bytes> limit, std::optional<Bytes> peak);

}  // namespace podqos::core
