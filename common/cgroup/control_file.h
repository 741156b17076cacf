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

/// Opens a control file of a cgroup; O_CLOEXEC|O_NOFOLLOW are added to `flags`. `name` must be a
/// single path component, else EINVAL. The file type is not checked: a cgroup directory only holds
/// files made by the kernel.
[[nodiscard]] OrErrno<sys::UniqueFd> open_control_file(const sys::Directory& cgroup,
                                                       const std::string& name, int flags);
/// Reads a value of at most 4 KiB with one read(2); trailing newlines are removed.
[[nodiscard]] OrErrno<std::string> read_value(int fd);
/// The same, for a file that is opened for it. Errors name the full path.
[[nodiscard]] Result<std::string> read_value(const sys::Directory& cgroup, const std::string& name);
/// Writes the whole value with one write(2), since the kernel parses each write on its own. EIO for
/// a partial write.
[[nodiscard]] OrErrno<void> write_value(int fd, std::string_view value);
/// The same, for a file that is opened for it.
[[nodiscard]] OrErrno<void> write_value(const sys::Directory& cgroup, const std::string& name,
                                        std::string_view value);
/// Reads a file of at most `limit` bytes, trailing newlines removed. Errors name the full path;
/// kTooLarge beyond the limit.
/// @param end  whether a short read ends the file; kEmptyRead for lists such as cgroup.procs
[[nodiscard]] Result<std::string> read_long(const sys::Directory& cgroup, const std::string& name,
                                            std::size_t limit, sys::FileEnd end);

/// The value of `key` in the text of a flat keyed file ("key value" per line); nullopt if the key
/// is missing or its value is not an integer.
/// @note Documentation/admin-guide/cgroup-v2.rst, "Format".
[[nodiscard]] std::optional<std::int64_t> find_key(std::string_view text, std::string_view key);

}  // namespace podqos::cgroup
