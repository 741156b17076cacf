#include "nri/plugin_process.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include <pthread.h>

#include "common/app/log.h"
#include "common/base/text.h"
#include "common/base/units.h"
#include "common/store/state_directory.h"
#include "common/sys/process.h"
#include "common/sys/sandbox.h"

namespace podqos::nri {

namespace {

/// Describes the process whose pid is in the lock file; "" if it has none.
std::string holder_of(const sys::Directory& directory) {
  constexpr std::size_t kLongest = 4096;
  const auto text = directory.read_file(store::kPluginFile, kLongest);
  std::string_view lines = text ? std::string_view{*text} : "";
  const auto pid = parse_int(read_until(lines, '\n'));
  return pid ? cat(" (process ", *pid, ")") : "";
}

/// Independent of the settings, because a reload may enable what needs them.
constexpr std::array kKept = {
    CAP_DAC_OVERRIDE,  // cgroup files and /proc/PID/oom_score_adj of the container's user
    CAP_KILL,          // processes of an evicted pod, where the kernel has no cgroup.kill
    CAP_SYS_ADMIN,     // trusted.* attributes, which mark podqos's cgroups
    CAP_SYS_PTRACE,    // see processes where /proc is mounted with hidepid
    CAP_SYS_NICE,      // v1 cpuset controller, to attach a monitor with more capabilities
    CAP_SYS_RESOURCE,  // lower an OOM score
    CAP_SYSLOG,        // the kernel's log, which tells by whose limit a process was OOM-killed
};

}  // namespace

Result<sys::UniqueFd> open_signals() {
  sigset_t taken{};
  ::sigemptyset(&taken);
  for (const int number : {SIGTERM, SIGINT, SIGHUP})
    ::sigaddset(&taken, number);
  if (const int err = ::pthread_sigmask(SIG_BLOCK, &taken, nullptr); err != 0)
    return fail_errno(err, "block signals");
  sys::UniqueFd fd{::signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK)};
  if (!fd.valid()) return fail_errno(errno, "signalfd");
  return fd;
}

Result<sys::FileLock> lock_single_instance(const std::string& state_directory) {
  PODQOS_ASSIGN(const auto directory, store::make_state_directory(state_directory));
  auto lock = sys::FileLock::acquire(directory, store::kPluginFile, {});
  const std::string path = cat(directory.path(), "/", store::kPluginFile);
  if (!lock && lock.error().code == ErrorCode::kTimeout) {
    return fail(ErrorCode::kTimeout, cat("another podqos-nri", holder_of(directory), " holds ",
                                         path, ": only one may serve a runtime"));
  }
  if (!lock) return lock;
  PODQOS_TRY(write_status(state_directory, ""));
  return lock;
}

Status write_status(const std::string& state_directory, std::string_view status) {
  PODQOS_ASSIGN(const auto directory, store::open_state_directory(state_directory));
  // A reader finds one status or the other, and not an empty file between them.
  const int cleared = status.empty() ? O_TRUNC : 0;
  PODQOS_ASSIGN(const auto file, directory.open_file(store::kPluginFile, O_WRONLY | cleared));
  auto written = sys::write_all(
      file.fd.get(), cat(::getpid(), "\n", app::one_line(status), status.empty() ? "" : "\n"));
  if (written) return {};
  return fail(
      std::move(written).error().with_context(cat(directory.path(), "/", store::kPluginFile)));
}

Status join_cgroup_namespace() {
  // Reading this requires no ptrace access to the process.
  const auto cgroups = sys::cgroups_of(Pid{1});
  const auto is_outside = [](const sys::ProcCgroup& cgroup) {
    return cgroup.path == "/.." || cgroup.path.starts_with("/../");
  };
  if (!cgroups || std::ranges::none_of(*cgroups, is_outside)) return {};
  const std::string path = "/proc/1/ns/cgroup";
  const sys::UniqueFd host{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (host.valid() && ::setns(host.get(), CLONE_NEWCGROUP) == 0) return {};
  auto error = Error::from_errno(errno, cat("join the cgroup namespace ", path));
  error.message +=
      ": a container with a cgroup namespace of its own needs CAP_SYS_PTRACE and CAP_SYS_ADMIN for "
      "it, and no AppArmor profile";
  return fail(std::move(error));
}

Status enter_sandbox() {
  PODQOS_TRY(sys::keep_capabilities(kKept));
#ifdef PODQOS_WITHOUT_FILTER
  // The sanitizers' own runtime needs more syscalls than the allow-list has.
  return {};
#else
  return sys::install_filter(sys::Filter::kPlugin);
#endif
}

}  // namespace podqos::nri
