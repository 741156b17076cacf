#include "common/sys/process.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <utility>

#include "common/base/text.h"
#include "common/sys/directory.h"
#include "common/sys/fd.h"

namespace podqos::sys {

namespace {

constexpr std::size_t kMaxStat = 8'192;
constexpr std::size_t kMaxCgroups = 1'048'576;  // some 20 lines with paths of up to 4 KiB
constexpr std::size_t kMaxStatus = 1'048'576;   // a process may be in 65,536 groups
constexpr std::size_t kMaxNumber = 4'096;

/// The number that a file holds.
Result<std::int64_t> parse_number(const std::string& path, Result<std::string> read) {
  PODQOS_ASSIGN(const auto text, std::move(read));
  if (const auto number = parse_int(without_newline(text))) return *number;
  return fail(ErrorCode::kIo, cat(path, ": unexpected \"", printable(text), "\""));
}

std::unexpected<Error> gone(Pid pid) {
  return fail(ErrorCode::kNotFound, cat("process ", pid.value(), " is gone"));
}

/// Whether a process exists that /proc does not show. Kernels before 5.3 and some seccomp profiles
/// do not say; then what /proc shows counts.
bool is_hidden(Pid pid) {
  const UniqueFd process{static_cast<int>(::syscall(SYS_pidfd_open, pid.value(), 0U))};
  const int err = errno;
  return process.valid() || (err != ESRCH && err != ENOSYS && err != EPERM && err != EINVAL);
}

/// The error for a process that /proc does not show: kNotFound only if it does not exist.
/// @note proc(5): with the mount option hidepid, /proc shows a process only to those who may trace
///       it.
std::unexpected<Error> not_shown(Pid pid) {
  if (!is_hidden(pid)) return gone(pid);
  return fail(ErrorCode::kPermission,
              cat("process ", pid.value(),
                  " is hidden: /proc is mounted with hidepid, and podqos needs CAP_SYS_PTRACE to "
                  "see processes of containers there"));
}

/// Reads a file of a process; errors as of not_shown() if the process does not exist.
Result<std::string> read_of(Pid pid, std::string_view file, std::size_t limit) {
  auto text = read_file(cat("/proc/", pid.value(), "/", file), limit);
  if (!text && text.error().code == ErrorCode::kNotFound) return not_shown(pid);
  return text;
}

/// A zombie keeps its pid and start time but does not run; an exiting thread has already left its
/// cgroup.
bool has_ended(const ProcStat& thread) {
  return thread.exiting || thread.state == 'Z' || thread.state == 'X' || thread.state == 'x';
}

/// nullopt if it does not exist.
std::optional<ProcStat> stat_in(const Directory& directory, const std::string& path) {
  const Result<std::string> text = directory.read_file(path, kMaxStat);
  return text ? parse_proc_stat(*text) : std::nullopt;
}

/// A running thread of a process whose leader has ended: after pthread_exit(3) in the leader the
/// others run on, and the process ends with the last of them.
std::optional<Pid> other_running_thread(Pid pid, StartTime start_time) {
  const Result<Directory> process = Directory::open(cat("/proc/", pid.value()));
  if (!process) return std::nullopt;
  // Reads through this descriptor return this process's data or fail, even if the pid is reused.
  const std::optional<ProcStat> first = stat_in(*process, "stat");
  if (!first || first->start_time != start_time) return std::nullopt;
  const Result<Directory> threads = process->open_directory("task");
  if (!threads) return std::nullopt;
  const Result<std::vector<std::string>> names = threads->entries();
  if (!names) return std::nullopt;
  for (const std::string& name : *names) {
    const std::optional<ProcStat> thread = stat_in(*threads, cat(name, "/stat"));
    if (!thread || has_ended(*thread) || thread->killed) continue;
    if (const auto id = parse_int(name)) return Pid{static_cast<std::int32_t>(*id)};
  }
  return std::nullopt;
}

/// @param stat  of the thread group leader
std::optional<Pid> living_thread(Pid pid, const std::optional<ProcStat>& stat) {
  if (!stat) return std::nullopt;
  return has_ended(*stat) ? other_running_thread(pid, stat->start_time) : pid;
}

}  // namespace

std::optional<ProcStat> parse_proc_stat(std::string_view text) {
  // The process chooses its name, which may be "a) R 1": only the last ')' ends it.
  const std::size_t name_begin = text.find('(');
  const std::size_t name_end = text.rfind(") ");
  if (name_end == std::string_view::npos || name_begin > name_end) return std::nullopt;
  const std::string_view rest = without_newline(text.substr(name_end + 2));
  const auto field = [&](std::size_t number) { return parse_int(word_at(rest, number - 3)); };
  const std::string_view state = word_at(rest, 0);  // field 3
  const std::optional<std::int64_t> parent = field(4);
  const std::int64_t flags = field(9).value_or(0);
  const std::optional<std::int64_t> start = field(22);
  // PF_EXITING and PF_SIGNALED, include/linux/sched.h.
  constexpr std::int64_t kExiting = 0x4;
  constexpr std::int64_t kSignaled = 0x400;
  if (state.size() != 1 || !parent || !start) return std::nullopt;
  return ProcStat{.name = std::string{text.substr(name_begin + 1, name_end - name_begin - 1)},
                  .state = state.front(),
                  .parent = Pid{static_cast<std::int32_t>(*parent)},
                  .start_time = StartTime{*start},
                  .exiting = (flags & kExiting) != 0,
                  .killed = (flags & kSignaled) != 0};
}

Result<std::optional<ProcStat>> stat_of(Pid pid) {
  const Result<std::string> text = read_of(pid, "stat", kMaxStat);
  if (text) return parse_proc_stat(*text);
  if (text.error().code == ErrorCode::kNotFound) return std::nullopt;
  return fail(text.error());
}

Result<std::optional<Pid>> living_thread_of(Pid pid, std::optional<StartTime> started) {
  PODQOS_ASSIGN(auto stat, stat_of(pid));
  if (stat && started && stat->start_time != started) return std::nullopt;
  return living_thread(pid, stat);
}

Result<std::optional<StartTime>> start_time_of(Pid pid) {
  PODQOS_ASSIGN(auto stat, stat_of(pid));
  if (!living_thread(pid, stat)) return std::nullopt;
  return stat->start_time;
}

bool is_alive(Pid pid, StartTime start_time) {
  const Result<std::optional<StartTime>> found = start_time_of(pid);
  return !found || *found == start_time;
}

namespace {

/// The text of /proc/PID/status.
Result<std::string> status_of(std::string_view process) {
  return read_file(cat("/proc/", process, "/status"), kMaxStatus);
}

/// The value of a field of /proc/PID/status; empty if it is missing.
std::string_view field_of(std::string_view status, std::string_view name) {
  const std::string label = cat("\n", name, ":\t");
  const std::size_t at = status.find(label);
  if (at == std::string_view::npos) return {};
  status.remove_prefix(at + label.size());
  return read_until(status, '\n');
}

/// Whether a signal set contains SIGKILL.
/// @param set  16 hexadecimal digits; signal 1 is the lowest bit
bool holds_kill(std::string_view set) {
  constexpr std::uint64_t kKill = 1U << (SIGKILL - 1U);
  constexpr int kHexadecimal = 16;
  std::uint64_t signals = 0;
  std::from_chars(set.data(), set.data() + set.size(), signals, kHexadecimal);
  return (signals & kKill) != 0;
}

}  // namespace

bool has_pending_kill(std::string_view status) {
  return holds_kill(field_of(status, "SigPnd")) || holds_kill(field_of(status, "ShdPnd"));
}

bool is_ending(Pid pid) {
  const Result<std::optional<ProcStat>> stat = stat_of(pid);
  if (!stat) return false;
  const std::optional<Pid> thread = living_thread(pid, *stat);
  if (!thread || (*stat)->killed) return true;
  const Result<std::string> status = status_of(std::to_string(thread->value()));
  return status && has_pending_kill(*status);
}

bool shares_pid_namespace(Pid pid) {
  const Result<std::string> own = status_of("self");
  const Result<std::string> other = status_of(std::to_string(pid.value()));
  if (!own || !other) return true;
  // NSpid has one pid for each level of nesting. Unlike /proc/PID/ns/pid, reading it requires no
  // ptrace access to the process.
  const auto levels = [](std::string_view status) {
    return std::ranges::count(field_of(status, "NSpid"), '\t');
  };
  return levels(*own) == levels(*other);
}

bool is_roots(Pid pid) {
  const Result<std::string> status = status_of(std::to_string(pid.value()));
  // Real, effective, saved and file system user.
  return status && field_of(*status, "Uid").starts_with("0\t0\t");
}

std::vector<ProcCgroup> parse_proc_cgroup(std::string_view text) {
  std::vector<ProcCgroup> cgroups;
  while (!text.empty()) {
    std::string_view line = read_until(text, '\n');
    const std::string_view id = read_until(line, ':');
    const std::string_view controllers = read_until(line, ':');
    // The rest is the path, which may contain colons.
    if (!parse_int(id) || !line.starts_with('/')) continue;
    cgroups.push_back({.controllers = parts_of(controllers, ','), .path = std::string{line}});
  }
  return cgroups;
}

Result<std::vector<ProcCgroup>> cgroups_of(Pid pid) {
  PODQOS_ASSIGN(const auto text, read_of(pid, "cgroup", kMaxCgroups));
  return parse_proc_cgroup(text);
}

Status set_oom_score_adj(Pid pid, std::optional<StartTime> start_time, int score) {
  const std::string path = cat("/proc/", pid.value());
  const std::string what = cat(path, ": write \"", score, "\" to oom_score_adj");
  // Opened before the start time is read: a descriptor of /proc stays bound to the process it was
  // opened for. If the pid is reused, either the start time differs or the write fails.
  const UniqueFd file{::open(cat(path, "/oom_score_adj").c_str(), O_WRONLY | O_CLOEXEC)};
  if (const int err = errno; !file.valid()) {
    if (err == ENOENT) return not_shown(pid);
    return fail_errno(err, what);
  }
  if (start_time) {
    PODQOS_ASSIGN(const auto found, start_time_of(pid));
    if (found != start_time) return gone(pid);
  }

  const std::string value = std::to_string(score);
  if (::write(file.get(), value.data(), value.size()) >= 0) return {};
  const int err = errno;
  Error error = Error::from_errno(err, what);
  if (err == EACCES || err == EPERM) error.message += " (lowering it requires CAP_SYS_RESOURCE)";
  return fail(std::move(error));
}

Result<int> oom_score_adj_of(Pid pid) {
  constexpr std::string_view kFile = "oom_score_adj";
  PODQOS_ASSIGN(const auto score, parse_number(cat("/proc/", pid.value(), "/", kFile),
                                               read_of(pid, kFile, kMaxNumber)));
  return static_cast<int>(score);
}

Status kill_process(Pid pid) {
  if (::kill(static_cast<pid_t>(pid.value()), SIGKILL) == 0 || errno == ESRCH) return {};
  return fail_errno(errno, cat("kill process ", pid.value()));
}

std::optional<Bytes> meminfo_field(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    std::string_view line = read_until(text, '\n');
    if (read_until(line, ':') != name || !line.ends_with(" kB")) continue;
    line.remove_suffix(std::string_view{" kB"}.size());
    constexpr std::int64_t kKibi = 1024;
    const std::optional<std::int64_t> amount = parse_int(trimmed(line));
    return amount ? std::optional{Bytes{mul_div(*amount, kKibi, 1)}} : std::nullopt;
  }
  return std::nullopt;
}

Result<InstalledMemory> installed_memory() {
  const std::string path = "/proc/meminfo";
  PODQOS_ASSIGN(const auto text, read_file(path, kMaxStat));
  const auto memory = meminfo_field(text, "MemTotal");
  const auto swap = meminfo_field(text, "SwapTotal");
  if (!memory) return fail(ErrorCode::kIo, cat(path, ": no MemTotal"));
  return InstalledMemory{.memory = *memory,
                         .swap = swap.value_or(Bytes{0}),
                         .hugepages = meminfo_field(text, "Hugetlb").value_or(Bytes{0})};
}

MilliCpu online_cpu() {
  constexpr std::int64_t kMilliPerCpu = 1000;
  return MilliCpu{::sysconf(_SC_NPROCESSORS_ONLN) * kMilliPerCpu};
}

Result<std::int64_t> max_pids() {
  const std::string path = "/proc/sys/kernel/pid_max";
  return parse_number(path, read_file(path, kMaxNumber));
}

}  // namespace podqos::sys
