#include "nri/privileges.h"

#include <linux/capability.h>

#include <array>

#include "common/sys/sandbox.h"

namespace podqos::nri {

namespace {

/// For good, since a reload may ask for what a start did not.
constexpr std::array kKept = {
    CAP_CHOWN,         // files of containers of a user-namespaced engine keep their owner
    CAP_DAC_OVERRIDE,  // and need not let root in, as /proc/PID/oom_score_adj need not
    CAP_NET_ADMIN,     // device rules of a container that is moved: BPF programs of its cgroup
    CAP_SYS_ADMIN,     // trusted.* attributes, podqos's marks on its cgroups
    CAP_SYS_NICE,  // the v1 cpuset controller, when it takes in a monitor with more capabilities
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
