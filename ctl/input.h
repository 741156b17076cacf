#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace podqos::ctl {

/// The name of a file for messages: "standard input" for "-".
[[nodiscard]] std::string shown_name(const std::string& path);

/// Reads a whole file, or standard input for "-".
/// @return kTooLarge beyond `limit` bytes, kNotFound, kPermission or kIo; the error names the file.
[[nodiscard]] Result<std::string> read_input(const std::string& path, std::size_t limit);

/// Passes the lines of a file (standard input for "-") to `take`, without newline, each as soon as
/// it is complete; a last line without newline counts. A line longer than `limit` bytes is skipped
/// and passed as kTooLarge.
/// @param take  returns false to stop reading
/// @return the error of opening or reading the file.
[[nodiscard]] Status read_lines(const std::string& path, std::size_t limit,
                                const std::function<bool(const Result<std::string>&)>& take);

}  // namespace podqos::ctl
