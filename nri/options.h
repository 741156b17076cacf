#pragma once

#include <optional>
#include <string>
#include <variant>

#include "common/base/error.h"
#include "common/core/metrics_address.h"
#include "nri/connect.h"
#include "nri/connection.h"

namespace podqos::nri {

/// The command line options; nullopt if not given.
struct Options {
  std::optional<std::string> socket;            ///< --socket PATH
  std::optional<std::string> config;            ///< --config FILE
  std::optional<std::string> index;             ///< --index NN
  std::optional<std::string> name;              ///< --name NAME
  std::optional<core::MetricsAddress> metrics;  ///< --metrics ADDRESS
  friend bool operator==(const Options&, const Options&) = default;
};

/// The output for --help, --version or a usage error.
struct Answer {
  int status = 0;  ///< exit status: 0 prints to standard output; 2, usage error, to standard error
  std::string text;  ///< complete lines
  friend bool operator==(const Answer&, const Answer&) = default;
};

/// Parses and validates the command line.
[[nodiscard]] std::variant<Options, Answer> parse_options(int argc, const char* const* argv);

/// Name and index of the plugin: from the command line, else from the runtime that started it, else
/// "podqos" and "10". Plugins are called in the order of their indices, and see what earlier ones
/// have set: 10 is early, so that plugins that read a container's cgroup path see the final one.
/// @return kInvalidArgument: an index or name that a runtime would reject.
[[nodiscard]] Result<ConnectionOptions> identity_for(const Options& options,
                                                     const std::optional<Launch>& launch);

}  // namespace podqos::nri
