#pragma once

#include <string>

#include "ctl/configure/setup.h"
#include "ctl/table.h"

namespace podqos::ctl {

/// For people: a line for each change with how to undo it, the notes, what was done, and what is
/// left to the operator. Of a dry run the diffs of all changes, and the notes in lines that begin
/// with "#".
/// @return an error if diff(1) cannot be run
[[nodiscard]] Result<std::string> format_text(const Setup& setup, ColourMode mode);

/// For programs: engine, version, method, undo, changes (path, action, what, backup, of a dry run
/// diff), notes, next, checked, reloaded, restarted, stale, pluginEnabled, pluginConnected,
/// pluginDisabled.
[[nodiscard]] Result<std::string> format_json(const Setup& setup);

/// The change as diff(1) prints it, to be given to patch(1). A symlink shows its target as "->
/// TARGET".
/// @param root  in front of the path in the head lines
[[nodiscard]] Result<std::string> format_diff(const FileChange& change, const std::string& root,
                                              ColourMode mode);

}  // namespace podqos::ctl
