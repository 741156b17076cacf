#pragma once

#include <linux/capability.h>

#include <array>

#include "common/base/error.h"
#include "common/core/settings.h"
#include "common/sys/sandbox.h"

namespace podqos::hook {

/// The capabilities of root that every hook keeps, each with its reason.
constexpr std::array<int, 5> kKeptCapabilities = {
    CAP_CHOWN,         // preserve the owner of config.json in a user-namespaced engine's bundle
    CAP_DAC_OVERRIDE,  // open such a bundle, and /proc/PID/oom_score_adj of the container's user
    CAP_SYS_ADMIN,     // trusted.* attributes, which mark podqos's cgroups
    CAP_SYS_PTRACE,    // see processes where /proc is mounted with hidepid
    CAP_SYS_RESOURCE,  // lower an OOM score
};

/// Restricts the process before it parses untrusted input: umask 077, kKeptCapabilities, and the
/// syscall allow-list sys::Filter::kHook. Cannot be undone.
///
/// If `settings` ask to charge monitors, CAP_SYS_NICE is kept as well: the v1 cpuset controller
/// requires it to attach a process that has more capabilities than the mover.
/// @return the error of dropping capabilities or of installing the filter; the caller must not
///         parse anything then. Without root only the umask and the filter apply.
[[nodiscard]] Status enter_sandbox(const core::Settings& settings);

}  // namespace podqos::hook
