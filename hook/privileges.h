#pragma once

#include <linux/capability.h>

#include <array>

#include "common/base/error.h"
#include "common/core/settings.h"
#include "common/sys/sandbox.h"

namespace podqos::hook {

/// What a hook keeps of root's capabilities, and why.
constexpr std::array<int, 4> kKeptCapabilities = {
    CAP_CHOWN,         // a rewritten config.json keeps the owner of a user-namespaced engine
    CAP_DAC_OVERRIDE,  // such a bundle need not let root in; /proc/PID/oom_score_adj belongs to the
                       // container's user
    CAP_SYS_ADMIN,     // trusted.* attributes, podqos's marks on its cgroups
    CAP_SYS_RESOURCE,  // lower an OOM score
};

/// umask 077, the capabilities above, and the syscall allow-list: before input from others is
/// parsed. Where the operator wants misplaced containers or monitors moved, CAP_SYS_NICE stays
/// too: the v1 cpuset controller asks for it when it takes in a process with more capabilities than
/// the mover. For containers CAP_NET_ADMIN stays as well: kernels ask for it where device rules,
/// which are BPF programs of a cgroup, are seen and copied.
[[nodiscard]] Status enter_sandbox(const core::Settings& settings);

}  // namespace podqos::hook
