#pragma once

#include <string>

#include "common/base/error.h"
#include "common/sys/directory.h"

namespace podqos::store {

/// Opens the directory of the state, which must exist (kNotFound). Whose it is,
/// check_state_directory() says.
[[nodiscard]] Result<sys::Directory> open_state_directory(const std::string& path);
/// The same, made if it is missing; its parent must exist.
[[nodiscard]] Result<sys::Directory> make_state_directory(const std::string& path);

/// Can nothing in it be changed, because its file system is mounted read-only?
[[nodiscard]] bool is_read_only(const std::string& path);

/// Refuses a directory in which another user could change the state, or put another in its place: a
/// symlink, another owner, or one that others can write to; and a parent that belongs to another
/// user than root and the caller, or that others can write to without the sticky bit (kConflict).
[[nodiscard]] Status check_state_directory(const sys::Directory& directory);

}  // namespace podqos::store
