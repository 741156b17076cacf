#pragma once

#include <cstdint>
#include <span>

#include "common/base/error.h"

namespace podqos::sys {

/// Drops all capabilities but `kept` from the permitted, effective, inheritable and ambient sets.
/// The bounding set is left alone: it only affects execve(2), which the filter forbids, and
/// dropping it would cost 40 system calls at every container start.
/// @param kept  CAP_* numbers; kInvalidArgument if out of range
[[nodiscard]] Status keep_capabilities(std::span<const int> kept);

/// Whether the capability is in the permitted set of this process.
[[nodiscard]] bool has_capability(int capability);

/// The system call allow-list of a program; see seccomp_gen/filters.h.
enum class Filter : std::uint8_t {
  kHook,    ///< podqos-hook, the wrapper's child and podqosctl: state, cgroups, syslog
  kPlugin,  ///< podqos-nri: as the hook, plus connections to runtimes
};

/// Sets no_new_privs and installs the allow-list, which libseccomp compiles at build time. Any
/// other system call kills the process. Executed programs inherit the filter, so a program that
/// executes another must not call this.
[[nodiscard]] Status install_filter(Filter filter);

}  // namespace podqos::sys
