#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "common/base/error.h"
#include "common/core/settings.h"
#include "common/sys/sandbox.h"
#include "ctl/cli/table.h"

namespace podqos::ctl {

/// Exit statuses of podqosctl.
constexpr int kDone = 0;
constexpr int kRefused = 1;  ///< refused or failed
constexpr int kUsage = 2;    ///< usage error

/// What a person has to know of `"enabled": false`.
constexpr std::string_view kSwitchedOff =
    "podqos is switched off by \"enabled\": false: new containers start unmanaged, and earlier "
    "ones are released when they end";

/// The command line.
struct Cli {
  CLI::App app{"Inspect, explain and repair the pod cgroups of this node.", "podqosctl"};
  std::optional<std::string> config = {};  ///< --config FILE
  /// How the subcommand ended, which parsing runs: its exit status, or an error to be printed.
  Result<int> status = kUsage;
};

/// How a subcommand prints.
struct OutputOptions {
  std::string form = "text";
  std::string colour = "auto";
  bool wide = false;

  [[nodiscard]] bool is_json() const { return form == "json"; }
  [[nodiscard]] ColourMode mode() const { return colour_mode(colour); }
  /// The terminal. To be asked before narrow(), whose allow-list does not have its size.
  [[nodiscard]] Screen screen() const {
    return {.colour = mode(), .width = wide ? Screen::kUnlimited : screen_width()};
  }
};
/// Adds -o, text or json.
void add_output(CLI::App& sub, OutputOptions& options);
/// Adds -o and --color.
void add_coloured_output(CLI::App& sub, OutputOptions& options);
/// Adds --wide.
void add_wide(CLI::App& sub, OutputOptions& options);

/// Adds one subcommand each, with its options. `cli` has to stay where it is.
void add_explain(Cli& cli);
void add_annotate(Cli& cli);
void add_status(Cli& cli);
void add_describe(Cli& cli);
void add_tree(Cli& cli);
void add_top(Cli& cli);
void add_events(Cli& cli);
void add_why(Cli& cli);
void add_metrics(Cli& cli);
void add_doctor(Cli& cli);
void add_report(Cli& cli);
void add_reconcile(Cli& cli);
void add_resize(Cli& cli);
void add_configure(Cli& cli);
void add_config(Cli& cli);
void add_version(Cli& cli);

/// Why podqos manages nothing here: it is switched off, or this is a user namespace; "" if it does.
[[nodiscard]] std::string_view why_unmanaged(const core::Settings& settings);

/// Whether the subcommand reads podqos's configuration, and so takes --config.
[[nodiscard]] bool reads_configuration(const CLI::App& sub);

/// The settings that are in force. Prints the errors of the configuration to standard error.
/// @return the first of these errors if no settings are known that were valid
[[nodiscard]] Result<core::Settings> settings_in_force(const Cli& cli);

/// Drops all capabilities but `kept` and installs a syscall allow-list. To be called before
/// untrusted input is parsed; cannot be undone.
[[nodiscard]] Status narrow(std::span<const int> kept, sys::Filter filter = sys::Filter::kHook);

/// Keeps what would end this program, such as Ctrl-C, from doing so before its work is done.
void block_signals();

/// Writes to standard output. @return kDone, or kRefused with a message if that fails (EPIPE,
/// ENOSPC, …).
[[nodiscard]] int print(std::string_view text);
/// The error of a file that only root may read or write, with that remedy for a caller who is not.
[[nodiscard]] Error for_root(Error error);
/// Prints "podqosctl: <message>" to standard error, for_root(). @return kRefused.
int log_failure(const Error& error);
/// Prints "podqosctl: <message>" to standard error.
void warn(std::string_view message);

/// The name of a file for messages: "standard input" for "-".
[[nodiscard]] std::string shown_name(const std::string& path);

/// The error of what a file says, which names the file unless it does so already.
[[nodiscard]] Error in_file(Error error, const std::string& path);

/// Reads a whole file, or standard input for "-".
/// @return kTooLarge beyond `limit` bytes, kNotFound, kPermission or kIo; the error names the file.
[[nodiscard]] Result<std::string> read_input(const std::string& path, std::size_t limit);

/// A stream, to be closed at the end.
using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
/// Opens a file, or standard input for "-".
[[nodiscard]] Result<File> open_input(const std::string& path);

}  // namespace podqos::ctl
