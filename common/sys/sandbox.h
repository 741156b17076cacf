#pragma once

#include <cstdint>
#include <span>

#include "common/base/error.h"

namespace podqos::sys {

/// The capabilities that a program keeps; all others leave the permitted, effective, inheritable
/// and ambient sets. The bounding set only matters to what is executed, which the filter forbids:
/// 40 system calls for it would be paid on every container start.
[[nodiscard]] Status keep_capabilities(std::span<const int> kept);

/// Is the capability in this process's permitted set?
[[nodiscard]] bool has_capability(int capability);

/// Which allow-list.
enum class Filter : std::uint8_t {
  kHook,  ///< podqos-hook and the wrapper's parsing child: files below the state and cgroup
          ///< directories, syslog
  kTool,  ///< podqosctl: the same, and what a dynamically linked C++ program with a terminal needs
  kPlugin,  ///< podqos-nri: the hook's, and connections to runtimes
};

/// Sets no_new_privs and installs the allow-list, compiled by libseccomp at build time; a syscall
/// that is not on it kills the process. Inherited by what is executed, so the program that execs
/// must not call it.
[[nodiscard]] Status install_filter(Filter filter);

}  // namespace podqos::sys
