#pragma once

#include <string>

#include "ctl/configure/plan.h"
#include "ctl/table.h"

namespace podqos::ctl {

/// The change as a unified diff, to be read and to be given to patch(1): one hunk from the first to
/// the last line that differs, three lines of context. A symlink shows its target as "-> TARGET".
/// @param root  in front of the path in the head lines
[[nodiscard]] std::string format_diff(const FileChange& change, const std::string& root,
                                      ColourMode mode);

}  // namespace podqos::ctl
