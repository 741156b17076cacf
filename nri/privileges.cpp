#include "nri/privileges.h"

#include <linux/capability.h>

#include <array>

#include "common/sys/sandbox.h"

namespace podqos::nri {

namespace {

/// Independent of the settings, because a reload may enable what needs them.
constexpr std::array kKept = {
    CAP_DAC_OVERRIDE,  // cgroup files and /proc/PID/oom_score_adj of the container's user
    CAP_NET_ADMIN,     // copy device rules of a moved container: BPF programs of its cgroup
    CAP_SYS_ADMIN,     // trusted.* attributes, which mark podqos's cgroups
    CAP_SYS_NICE,      // v1 cpuset controller, to attach a monitor with more capabilities
    CAP_SYS_RESOURCE,  // lower an OOM score
};

}  // namespace

Status enter_sandbox() {
  if (auto kept = sys::keep_capabilities(kKept); !kept) return kept;
#ifdef PODQOS_WITH_SANITIZER
  // The sanitizers' own runtime needs more syscalls than the allow-list has.
  return {};
#else
  return sys::install_filter(sys::Filter::kPlugin);
#endif
}

}  // namespace podqos::nri
