#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/sys/directory.h"
#include "common/sys/fd.h"

namespace podqos::cgroup {

/// A value or the errno: what the kernel meant depends on the file, so the caller makes the
/// sentence.
template <class T>
using OrErrno = std::expected<T, int>;

/// Opens a file of a cgroup directory; O_CLOEXEC|O_NOFOLLOW are added. `name` is one component,
/// else EINVAL. There is no check for a regular file: a cgroup directory holds files of the
/// kernel's only.
[[nodiscard]] OrErrno<sys::UniqueFd> open_control_file(const sys::Directory& cgroup,
                                                       const std::string& name, int flags);
/// A short value, up to 4 KiB by one read(2), trailing newlines cut.
[[nodiscard]] OrErrno<std::string> read_value(int fd);
[[nodiscard]] OrErrno<std::string> read_value(const sys::Directory& cgroup,
                                              const std::string& name);
/// One write(2) of the whole value, as the kernel wants it.
[[nodiscard]] OrErrno<void> write_value(int fd, std::string_view value);
[[nodiscard]] OrErrno<void> write_value(const sys::Directory& cgroup, const std::string& name,
                                        std::string_view value);
/// A file of any length up to `limit` bytes, trailing newlines cut; errors name the whole path.
[[nodiscard]] Result<std::string> read_long(const sys::Directory& cgroup, const std::string& name,
                                            std::size_t limit, sys::FileEnd end);

}  // namespace podqos::cgroup
