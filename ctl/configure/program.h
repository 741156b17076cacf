#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "ctl/configure/engine.h"

namespace podqos::ctl {

/// How a program ended.
struct ProgramEnd {
  int status = 0;  ///< exit status; 128 and the number for a signal
  /// Standard output and standard error, the first 16 MiB, no newline at its end.
  std::string output;
};

/// Runs a program with an environment of its own and no input, and waits for its end.
/// @param argv  the first is the program's absolute path; no PATH is searched
/// @return kTimeout, after SIGKILL for its process group, if it has not ended in two minutes.
[[nodiscard]] Result<ProgramEnd> run_program(const std::vector<std::string>& argv);

/// The engine's program in the usual directories.
/// @return nullopt if it is not installed; kConflict if two different ones are, because which of
///         them runs, and what version it has, only the operator knows.
[[nodiscard]] Result<std::optional<std::string>> find_program(Engine engine);

/// What the program's --version says.
[[nodiscard]] Result<Version> version_of(const std::string& program);

/// The engine's own check of its configuration; nullopt if this version has none (dockerd
/// --validate came with 23.0).
[[nodiscard]] std::optional<std::vector<std::string>> check_command(
    Engine engine, const std::string& program, const std::optional<Version>& version);

}  // namespace podqos::ctl
