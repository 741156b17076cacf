#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "common/base/error.h"

namespace podqos::ctl {

constexpr int kDone = 0;
constexpr int kRefused = 1;
constexpr int kUsage = 2;

/// What every subcommand may be told.
struct Globals {
  std::optional<std::string> config;  ///< --config FILE
};

/// A subcommand: what the command line knows of it, and what it does.
struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;
};

[[nodiscard]] Command add_explain(CLI::App& app, const Globals& globals);
[[nodiscard]] Command add_annotate(CLI::App& app);
[[nodiscard]] Command add_status(CLI::App& app, const Globals& globals);
[[nodiscard]] Command add_tree(CLI::App& app, const Globals& globals);
[[nodiscard]] Command add_reconcile(CLI::App& app, const Globals& globals);
[[nodiscard]] Command add_config(CLI::App& app, const Globals& globals);

/// Gives up all capabilities but `kept` and installs the syscall allow-list; to be called before
/// anything is parsed that others wrote.
[[nodiscard]] Status narrow(std::span<const int> kept);

/// Writes to standard output; false when the reader is gone or the disk full.
[[nodiscard]] bool print(std::string_view text);
/// The end of a run that printed everything: flushes, and gives kDone or kRefused.
[[nodiscard]] int finish(bool printed = true);
/// "podqosctl: <message>" on standard error; gives kRefused.
int log_failure(const Error& error);
void warn(std::string_view message);

}  // namespace podqos::ctl
