#pragma once

#include <optional>
#include <string>
#include <variant>

#include "common/core/settings.h"

namespace podqos::nri {

/// The command line options; nullopt if not given.
struct Options {
  std::optional<std::string> socket;  ///< --socket PATH
  std::optional<std::string> config;  ///< --config FILE
  /// --index NN. Plugins are called in the order of their indices, and see
  /// what earlier ones have set: 10 is early, so that plugins that read a container's cgroup path
  /// see the final one.
  std::string index = "10";
  std::string name = "podqos";                  ///< --name NAME
  std::optional<core::MetricsAddress> metrics;  ///< --metrics ADDRESS
  friend bool operator==(const Options&, const Options&) = default;
};

/// The output for --help, --version or a usage error.
struct Answer {
  int status = 0;  ///< exit status: 0 prints to standard output; 2, usage error, to standard error
  std::string text;  ///< complete lines
  friend bool operator==(const Answer&, const Answer&) = default;
};

/// Parses and validates the command line, and the variables that a runtime sets for a plugin that
/// it starts.
[[nodiscard]] std::variant<Options, Answer> parse_options(int argc, const char* const* argv);

}  // namespace podqos::nri
