#pragma once

#include "ctl/cli/json.h"
#include "ctl/configure/program.h"

namespace podqos::ctl {

/// The versions of podqos's programs, as those say them that engines call: "podqosctl",
/// "podqos-hook" and "podqos-nri", null for one that is not installed or does not say it.
/// @param warnings  why one does not say it, and that versions differ, are appended
[[nodiscard]] Json read_versions(const Run& run, std::vector<std::string>& warnings);

}  // namespace podqos::ctl
