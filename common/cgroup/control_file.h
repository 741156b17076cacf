#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/sys/directory.h"
#include "common/sys/fd.h"

namespace podqos::cgroup {

using sys::OrErrno;

/// Reads an open control file of at most `limit` bytes, trailing newlines removed; kTooLarge
/// beyond.
/// @param what  its full path, for errors
/// @param end  whether a short read ends the file; kEmptyRead for lists such as cgroup.procs
[[nodiscard]] Result<std::string> read_control(int fd, std::string_view what,
                                               std::size_t limit = 1U << 20U,
                                               sys::FileEnd end = sys::FileEnd::kShortRead);
/// The same, for a file of this directory.
[[nodiscard]] Result<std::string> read_control(const sys::Directory& cgroup, std::string_view name,
                                               std::size_t limit = 1U << 20U,
                                               sys::FileEnd end = sys::FileEnd::kShortRead);
/// Writes the whole value with one write(2), since the kernel parses each write on its own. EIO for
/// a partial write.
[[nodiscard]] OrErrno<void> write_value(int fd, std::string_view value);

/// The value of `key` in the text of a flat keyed file ("key value" per line); nullopt if the key
/// is missing or its value is not an integer.
/// @note Documentation/admin-guide/cgroup-v2.rst, "Format".
[[nodiscard]] std::optional<std::int64_t> find_key(std::string_view text, std::string_view key);

}  // namespace podqos::cgroup
