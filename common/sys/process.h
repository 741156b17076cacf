#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/base/units.h"

namespace podqos::sys {

/// Fields of /proc/PID/stat; proc_pid_stat(5).
struct ProcStat {
  std::string name;  ///< comm: the first 15 bytes of the program's or thread's name
  char state = '?';
  Pid parent;
  StartTime start_time;
  bool exiting = false;  ///< PF_EXITING, include/linux/sched.h
  bool killed = false;   ///< PF_SIGNALED: being terminated by a signal
  friend bool operator==(const ProcStat&, const ProcStat&) = default;
};
/// Parses a stat line; nullopt if it is malformed. The command name may contain spaces, newlines
/// and parentheses.
[[nodiscard]] std::optional<ProcStat> parse_proc_stat(std::string_view text);

/// Start time of a running process (field 22 of /proc/PID/stat, clock ticks since boot); nullopt if
/// it does not exist or if all its threads are exiting or zombies. kPermission if /proc hides it
/// (hidepid).
[[nodiscard]] Result<std::optional<StartTime>> start_time_of(Pid pid);
/// The stat line of the thread group leader, which may have ended while other threads run; nullopt
/// if the process does not exist.
[[nodiscard]] Result<std::optional<ProcStat>> stat_of(Pid pid);
/// A running thread of the process: the leader, or another one if the leader has ended; nullopt if
/// there is none, or if the process has not started at `started`. For a leader that has ended,
/// /proc/PID/cgroup shows "/" on v1, and on v2 the cgroup it had at that time.
[[nodiscard]] Result<std::optional<Pid>> living_thread_of(
    Pid pid, std::optional<StartTime> started = std::nullopt);
/// Whether the process with this pid and start time is still running, that is, the pid was not
/// reused. Also true if that cannot be found out.
[[nodiscard]] bool is_alive(Pid pid, StartTime start_time);

/// Whether the process does not exist, is exiting, or has a pending SIGKILL, which a last system
/// call may delay but nothing can revoke.
[[nodiscard]] bool is_ending(Pid pid);
/// Whether SIGKILL is pending (SigPnd or ShdPnd) in the text of /proc/PID/status.
[[nodiscard]] bool has_pending_kill(std::string_view status);

/// Whether a visible process is in this process's pid namespace rather than in a nested one. Also
/// true if /proc does not show it, for example because the process has ended.
[[nodiscard]] bool shares_pid_namespace(Pid pid);

/// Whether root has started a process, and it runs as root: not so a set-user-ID program of
/// another user's. False if /proc does not show it.
[[nodiscard]] bool is_roots(Pid pid);

/// A line of /proc/PID/cgroup; cgroups(7).
struct ProcCgroup {
  std::vector<std::string> controllers;  ///< "cpu", "cpuacct" or "name=systemd"; empty for v2
  /// Relative to the root of the reader's cgroup namespace; cgroup_namespaces(7).
  std::string path;
  friend bool operator==(const ProcCgroup&, const ProcCgroup&) = default;
};
/// The cgroups of a process, one per hierarchy; kNotFound if it does not exist.
[[nodiscard]] Result<std::vector<ProcCgroup>> cgroups_of(Pid pid);
/// Parses /proc/PID/cgroup; malformed lines are ignored.
[[nodiscard]] std::vector<ProcCgroup> parse_proc_cgroup(std::string_view text);

/// Writes /proc/PID/oom_score_adj, after checking that the process started at `start_time`. With
/// nullopt the caller guarantees that the pid was not reused.
/// @param score  [-1000, 1000], else kInvalidArgument
/// @return kNotFound if the process has ended, also if its pid was reused; kPermission if lowering
/// the score needs CAP_SYS_RESOURCE.
[[nodiscard]] Status set_oom_score_adj(Pid pid, std::optional<StartTime> start_time, int score);
/// Reads /proc/PID/oom_score_adj; kNotFound if the process does not exist.
[[nodiscard]] Result<int> oom_score_adj_of(Pid pid);

/// SIGKILL, which needs CAP_KILL for processes of other users; one that has ended counts as killed.
[[nodiscard]] Status kill_process(Pid pid);

/// Total RAM and swap of the machine.
struct InstalledMemory {
  Bytes memory;
  Bytes swap;
  Bytes hugepages;  ///< of `memory`, preallocated huge pages of all sizes; 0 before Linux 4.16
};
/// An amount of /proc/meminfo; nullopt if the field is missing or malformed.
[[nodiscard]] std::optional<Bytes> meminfo_field(std::string_view text, std::string_view name);
/// MemTotal, SwapTotal and Hugetlb of /proc/meminfo, where a container of LXC sees its own limits,
/// unlike in sysinfo(2).
/// @note The kubelet's machine info comes from /proc/meminfo; google/cadvisor lib/machine.
[[nodiscard]] Result<InstalledMemory> installed_memory();
/// Number of online CPUs × 1000: glibc reads /sys/devices/system/cpu/online.
[[nodiscard]] MilliCpu online_cpu();
/// How many processes and threads the machine can have, from /proc/sys/kernel/pid_max.
[[nodiscard]] Result<std::int64_t> max_pids();

}  // namespace podqos::sys
