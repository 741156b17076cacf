#pragma once

#include <string>

#include "common/base/error.h"
#include "common/sys/directory.h"

namespace podqos::store {

/// Opens the state directory; kNotFound if it is missing. Does not check its owner:
/// check_state_directory() does.
[[nodiscard]] Result<sys::Directory> open_state_directory(const std::string& path);
/// Like open_state_directory(), but creates the directory (mode 0700) if it is missing. Its parent
/// must exist.
[[nodiscard]] Result<sys::Directory> make_state_directory(const std::string& path);

/// Whether `path` is on a file system that is mounted read-only.
[[nodiscard]] bool is_read_only(const std::string& path);

/// Checks that no other user can change or replace the state, and sets mode 0700 where others could
/// read it.
/// @return kConflict if the directory is a symlink, has another owner than the caller or is
///         writable by group or others; or if one of its parents belongs to a user other than root
///         and the caller, or is writable by others without the sticky bit.
[[nodiscard]] Status check_state_directory(const sys::Directory& directory);

}  // namespace podqos::store
