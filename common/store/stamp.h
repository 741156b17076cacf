#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace podqos::store {

/// Identifies one version of a file that is replaced by rename. The kernel updates modification
/// times once per tick (up to Linux 6.12), so a change in place within a tick may go unnoticed.
struct Stamp {
  ino_t inode = 0;
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;
  friend bool operator==(const Stamp&, const Stamp&) = default;
};

/// Returns the stamp of the file, not followed if it is a symlink; nullopt with errno set if it
/// cannot be read.
/// @param directory  descriptor that a relative path starts at
[[nodiscard]] std::optional<Stamp> stamp_of(const std::string& path, int directory = AT_FDCWD);

}  // namespace podqos::store
