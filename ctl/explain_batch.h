#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"

namespace podqos::ctl {

/// Answers one line of `explain --batch` with a pod's values, a node's tiers or an error, as one
/// JSON object without newline. Depends only on the line, not on machine or configuration.
/// @param line  the line, or the error of reading it (too long)
[[nodiscard]] std::string answer_line(const Result<std::string>& line);

/// Answers all lines of a file ("-": standard input) on standard output, in order, each as soon as
/// it has been read. Lines are limited to kMaxInput bytes.
/// @return the exit status: kDone if every line was answered, also with an error object; kRefused
///         if the file cannot be read or the output not written.
[[nodiscard]] int run_batch(const std::string& path);

}  // namespace podqos::ctl
