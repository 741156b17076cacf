#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/base/units.h"

namespace podqos::sys {

/// What podqos reads from /proc/PID/stat.
struct ProcStat {
  std::string name;  ///< the first 15 bytes of the program's name, or what it calls itself
  char state = '?';
  Pid parent;
  StartTime start_time;
  bool exiting = false;  ///< on its way out: PF_EXITING, include/linux/sched.h
  bool killed = false;   ///< a signal ends it: PF_SIGNALED
  friend bool operator==(const ProcStat&, const ProcStat&) = default;
};
/// nullopt for text that is no stat line. The command name may hold spaces, newlines and
/// parentheses.
[[nodiscard]] std::optional<ProcStat> parse_proc_stat(std::string_view text);

/// Start time of a living process (field 22 of /proc/PID/stat); nullopt if there is none, or if all
/// of its threads are exiting or zombies.
[[nodiscard]] Result<std::optional<StartTime>> start_time_of(Pid pid);
/// Of the process's first thread, which may have ended while others run; nullopt if there is no
/// such process.
[[nodiscard]] Result<std::optional<ProcStat>> stat_of(Pid pid);
/// A thread by which the process lives: its first, or another where that has ended; nullopt if none
/// does. Where the first has ended, /proc/PID/cgroup says "/" for cgroup v1, and for v2 where the
/// process was then.
[[nodiscard]] Result<std::optional<Pid>> living_thread_of(Pid pid);
/// Is the process alive that had this pid and start time?
[[nodiscard]] bool is_alive(Pid pid, StartTime start_time);

/// Is the process gone or on its way out? That includes one whose last system call delays a SIGKILL
/// that nobody can take back.
[[nodiscard]] bool is_ending(Pid pid);
/// The text of /proc/PID/status; "pending" is a signal that the process has not got yet.
[[nodiscard]] bool has_pending_kill(std::string_view status);

/// Is a process that this one can see in this one's pid namespace, not in one below it? Also true
/// where /proc does not tell, as of a process that is gone.
[[nodiscard]] bool shares_pid_namespace(Pid pid);

/// One line of /proc/PID/cgroup.
struct ProcCgroup {
  std::vector<std::string> controllers;  ///< "cpu","cpuacct" or "name=systemd"; empty for v2
  std::string path;
  friend bool operator==(const ProcCgroup&, const ProcCgroup&) = default;
};
/// kNotFound when there is no such process.
[[nodiscard]] Result<std::vector<ProcCgroup>> cgroups_of(Pid pid);
/// Lines that are malformed are left out.
[[nodiscard]] std::vector<ProcCgroup> parse_proc_cgroup(std::string_view text);

/// Writes /proc/PID/oom_score_adj, after making sure that the process is still the one that started
/// at `start_time`; nullopt where the caller knows that it is.
/// @param score  [-1000, 1000], else kInvalidArgument.
/// @return kNotFound when that process is gone, also if its pid is another's now.
[[nodiscard]] Status set_oom_score_adj(Pid pid, std::optional<StartTime> start_time, int score);
[[nodiscard]] Result<int> oom_score_adj_of(Pid pid);

/// /proc/meminfo's MemTotal and SwapTotal, by sysinfo(2).
struct InstalledMemory {
  Bytes memory;
  Bytes swap;
};
[[nodiscard]] Result<InstalledMemory> installed_memory();
/// Number of CPUs in a list like "0-3,8"; nullopt for malformed text.
[[nodiscard]] std::optional<std::int64_t> count_cpu_list(std::string_view text);
/// Online CPUs × 1000, from /sys/devices/system/cpu/online.
[[nodiscard]] Result<MilliCpu> online_cpu();

}  // namespace podqos::sys
