#pragma once

#include <cstdint>
#include <string>

#include "ctl/configure/registration.h"
#include "ctl/table.h"

namespace podqos::ctl {

/// A line for each change with how to undo it, the notes, and what is left to the operator.
[[nodiscard]] std::string format_text(const Registration& registration);

/// The change as diff(1) prints it, to be given to patch(1). A symlink shows its target as "->
/// TARGET".
/// @param root  in front of the path in the head lines
/// @return an error if diff cannot be run.
[[nodiscard]] Result<std::string> format_diff(const FileChange& change, const std::string& root,
                                              ColourMode mode);

/// The diffs of all changes, and the notes in lines that begin with "#".
[[nodiscard]] Result<std::string> format_dry_run(const Registration& registration, ColourMode mode);

/// Whether each change in JSON has its "diff", as for --dry-run.
enum class WithDiff : std::uint8_t { kNo, kYes };

/// For programs: engine, version, method, undo, changes (path, action, what, backup), notes, next,
/// checked, reloaded, restarted, stale, pluginEnabled, pluginConnected,
/// pluginDisabled.
[[nodiscard]] Result<std::string> format_json(const Registration& registration, WithDiff diffs);

}  // namespace podqos::ctl
