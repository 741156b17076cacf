#include "nri/privileges.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "common/base/text.h"
#include "common/base/units.h"
#include "common/sys/fd.h"
#include "common/sys/process.h"
#include "common/sys/sandbox.h"

namespace podqos::nri {

namespace {

/// Independent of the settings, because a reload may enable what needs them.
constexpr std::array kKept = {
    CAP_DAC_OVERRIDE,  // cgroup files and /proc/PID/oom_score_adj of the container's user
    CAP_SYS_ADMIN,     // trusted.* attributes, which mark podqos's cgroups
    CAP_SYS_PTRACE,    // see processes where /proc is mounted with hidepid
    CAP_SYS_NICE,      // v1 cpuset controller, to attach a monitor with more capabilities
    CAP_SYS_RESOURCE,  // lower an OOM score
};

/// Whether a process is in a cgroup outside this process's cgroup namespace. Reading that requires
/// no ptrace access to the process.
bool is_outside(Pid pid) {
  const auto cgroups = sys::cgroups_of(pid);
  return cgroups && std::ranges::any_of(*cgroups, [](const sys::ProcCgroup& cgroup) {
           return cgroup.path == "/.." || cgroup.path.starts_with("/../");
         });
}

}  // namespace

Status join_cgroup_namespace() {
  constexpr Pid kInit{1};
  if (!is_outside(kInit)) return {};
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
#ifdef PODQOS_WITH_SANITIZER
  // The sanitizers' own runtime needs more syscalls than the allow-list has.
  return {};
#else
  return sys::install_filter(sys::Filter::kPlugin);
#endif
}

}  // namespace podqos::nri
