#pragma once

#include <string>
#include <string_view>

namespace podqos::hook {

/// Writes everything to a descriptor; false if that failed.
bool write_all(int fd, std::string_view text);
/// "<program>: <line>\n" on stderr, in one write.
void print_error(std::string_view program, std::string_view line);
/// Absolute path of this very executable, "" if /proc does not tell.
[[nodiscard]] std::string own_path();

}  // namespace podqos::hook
