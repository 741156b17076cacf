#pragma once

#include <span>

#include "common/base/error.h"

namespace podqos::sys {

/// Lets this process, which must have one thread, change files only beneath some places: write to
/// files, make and remove files and directories. Reading, owners, modes, extended attributes and
/// connections stay as they are. Sets no_new_privs. Cannot be undone.
/// @param places  open files and directories; O_PATH suffices
/// @return false if the kernel has no Landlock (before Linux 5.13, or switched off at boot).
/// @note From then on the process may not trace any other, whatever its capabilities: a /proc that
///       is mounted with hidepid shows it none.
/// @note Linux, Documentation/userspace-api/landlock.rst.
[[nodiscard]] Result<bool> restrict_writes(std::span<const int> places);

}  // namespace podqos::sys
