#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace podqos::ctl {

/// Reads a whole file, or standard input for "-".
/// @return kTooLarge beyond `limit` bytes; the error names the file.
[[nodiscard]] Result<std::string> read_input(const std::string& path, std::size_t limit);

/// Hands the lines of a file (standard input for "-") to `take`, one at a time and as soon as they
/// are complete; a last line without newline counts. A line longer than `limit` bytes is skipped
/// and handed over as an error.
/// @param take  false ends the reading.
[[nodiscard]] Status read_lines(const std::string& path, std::size_t limit,
                                const std::function<bool(const Result<std::string>&)>& take);

}  // namespace podqos::ctl
