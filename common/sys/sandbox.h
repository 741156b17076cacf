#pragma once

#include <cstdint>
#include <span>

#include "common/base/error.h"

namespace podqos::sys {

/// Drops all capabilities but `kept` from the permitted, effective, inheritable and ambient sets.
/// The bounding set is left alone: it only affects execve(2), which the filter forbids, and
/// dropping it would cost 40 system calls at every container start.
/// @param kept  CAP_* numbers
[[nodiscard]] Status keep_capabilities(std::span<const int> kept);

/// Whether the capability is in the permitted set of this process.
[[nodiscard]] bool has_capability(int capability);

/// Lets this process, which must have one thread, change files only beneath some places: write to
/// files, make and remove files and directories. Reading, owners, modes, extended attributes and
/// connections stay as they are. Sets no_new_privs. Cannot be undone.
/// @param places  open files and directories; O_PATH suffices
/// @return false if the kernel has no Landlock (before Linux 5.13, or switched off at boot).
/// @note From then on the process may not trace any other, whatever its capabilities: a /proc that
///       is mounted with hidepid shows it none.
/// @note Linux, Documentation/userspace-api/landlock.rst.
[[nodiscard]] Result<bool> restrict_writes(std::span<const int> places);

/// The system call allow-list of a program; see seccomp_gen/filters.h.
enum class Filter : std::uint8_t {
  kHook,    ///< podqos-hook, the wrapper's child and podqosctl: state, cgroups, syslog
  kPlugin,  ///< podqos-nri: as the hook, plus connections to runtimes
  kTop,     ///< podqosctl top: as the hook, plus the modes and the size of its terminal
};

/// Sets no_new_privs and installs the allow-list, which libseccomp compiles at build time. Any
/// other system call kills the process. Executed programs inherit the filter, so a program that
/// executes another must not call this.
[[nodiscard]] Status install_filter(Filter filter);

}  // namespace podqos::sys
