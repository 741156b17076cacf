#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace podqos::ctl {

/// The first argument with which the scripts of packaging/completion ask what may come next.
constexpr const char* kComplete = "__complete";

/// What may be typed as the last of these words, the others being in front of it: a subcommand, an
/// option, a value, by what --help says. It reads no file.
///
/// @param words  of a command line, without the program; the last may be empty
/// @return a line for each that begins as the last word does, "--driver=systemd" for
///         "--driver=s": the word, and behind a tab what it is, if that is known. The line ":file"
///         or ":dir" stands for the names of files or directories. Empty if nothing is known.
[[nodiscard]] std::string completions(const CLI::App& root, const std::vector<std::string>& words);

}  // namespace podqos::ctl
