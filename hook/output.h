#pragma once

#include <string>
#include <string_view>

namespace podqos::hook {

/// Writes all of `text` to a descriptor, continuing after EINTR and short writes.
/// @return false if write(2) failed; part of the text may have been written then.
bool write_all(int fd, std::string_view text);
/// Writes "<program>: <line>\n" to standard error in one write(2), so that lines of concurrent
/// programs do not mix. Control characters in `line` are replaced (app::one_line).
void print_error(std::string_view program, std::string_view line);
/// Absolute path of the running executable from /proc/self/exe, without the suffix " (deleted)"
/// that the kernel appends after an upgrade has replaced the file (fs/d_path.c).
/// @return "" if /proc cannot be read or the path exceeds PATH_MAX.
[[nodiscard]] std::string own_path();

}  // namespace podqos::hook
