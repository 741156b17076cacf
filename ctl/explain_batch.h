#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"

namespace podqos::ctl {

/// Answers one line of `explain --batch`: a pod's values, or a node's tiers, or the error; one JSON
/// object without newline. Depends on nothing but the line.
[[nodiscard]] std::string answer_line(const Result<std::string>& line);

/// Answers all lines of a file ("-": standard input), in order, each as soon as it is read.
/// @return the exit status: kDone if every line was answered, with an error or without.
[[nodiscard]] int run_batch(const std::string& path);

}  // namespace podqos::ctl
