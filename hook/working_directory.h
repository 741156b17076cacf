#pragma once

#include <string>

namespace podqos::hook {

/// The working directory; "" if it cannot be determined.
[[nodiscard]] std::string working_directory();
/// A path seen from any working directory: a relative one is one of this process.
[[nodiscard]] std::string absolute_path(std::string path);

}  // namespace podqos::hook
