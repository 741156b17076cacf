#pragma once

#include <string>

#include "common/base/error.h"

namespace podqos::hook {

/// Reads what a runtime's `update --resources` is about to read, which stays there for it. Waits
/// for at most a second until the writer of a pipe has closed it.
/// @param file  its path; "-": standard input
/// @return kUnsupported for what can be read only once, such as a terminal or a named pipe, or has
///         not been written within the time; kTooLarge beyond codec::kMaxConfigSize; the error of
///         the system call
[[nodiscard]] Result<std::string> read_resources(const std::string& file);

}  // namespace podqos::hook
