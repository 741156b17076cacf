#pragma once

#include <sys/types.h>

#include "common/base/error.h"
#include "common/sys/directory.h"

namespace podqos::store {

/// Refuses a directory in which somebody else could change the state: a symlink, another owner, or
/// one that others can write to (kConflict).
/// @return the owner, who is the caller.
[[nodiscard]] Result<uid_t> check_state_directory(const sys::Directory& directory);

}  // namespace podqos::store
