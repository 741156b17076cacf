#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace podqos::store {

/// Tells one file from the next that a rename puts in its place; times are as fine as the kernel's
/// tick.
struct Stamp {
  ino_t inode = 0;
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;
  friend bool operator==(const Stamp&, const Stamp&) = default;
};

/// nullopt: there is no such file.
/// @param path  relative paths start at `directory`
[[nodiscard]] std::optional<Stamp> stamp_of(const std::string& path, int directory = AT_FDCWD);

}  // namespace podqos::store
