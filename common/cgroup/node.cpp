#include "common/cgroup/node.h"

#include <linux/capability.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/sys/process.h"
#include "common/sys/sandbox.h"

namespace podqos::cgroup {

bool owns_host() {
  if (::geteuid() != 0) return false;
  // PROC_USER_INIT_INO of include/linux/proc_ns.h.
  constexpr ino_t kInitialUserNamespace = 0xEFFFFFFDU;
  struct stat status{};
  // A kernel without user namespaces has only the initial one.
  if (::stat("/proc/self/ns/user", &status) != 0) return errno == ENOENT;
  return status.st_ino == kInitialUserNamespace;
}

int reachable_oom_score(int wanted) {
  if (sys::has_capability(CAP_SYS_RESOURCE)) return wanted;
  const auto own = sys::oom_score_adj_of(Pid{::getpid()});
  return own ? std::max(wanted, *own) : wanted;
}

core::Driver machine_driver() {
  // As in sd_booted(3).
  struct stat status{};
  const bool systemd = ::lstat("/run/systemd/system", &status) == 0 && S_ISDIR(status.st_mode);
  return systemd ? core::Driver::kSystemd : core::Driver::kCgroupfs;
}

core::NodeCapacity with_pids(core::NodeCapacity capacity) {
  if (capacity.pids == 0) capacity.pids = sys::max_pids().value_or(0);
  return capacity;
}

Result<core::NodeCapacity> node_capacity(const core::Settings& settings) {
  core::NodeCapacity capacity;
  const bool counts_swap = settings.swap_behavior == core::SwapBehavior::kLimitedSwap;
  if (!settings.node_memory || counts_swap) {
    PODQOS_ASSIGN(auto installed, sys::installed_memory());
    capacity.memory = installed.memory;
    if (counts_swap) capacity.swap = installed.swap;
  }
  // Configured values override measured ones.
  if (settings.node_memory) capacity.memory = *settings.node_memory;
  capacity.cpu = settings.node_cpu ? *settings.node_cpu : sys::online_cpu();
  return capacity;
}

}  // namespace podqos::cgroup
