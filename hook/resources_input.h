#pragma once

#include <string>

#include "common/base/error.h"

namespace podqos::hook {

/// Reads what a runtime's `update --resources` is about to read.
/// @param file  its path; "-": standard input, which then yields the same bytes once more
/// @return kTooLarge beyond codec::kMaxConfigSize, kNotFound and the like for a file
[[nodiscard]] Result<std::string> read_resources(const std::string& file);

}  // namespace podqos::hook
