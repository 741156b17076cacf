#pragma once

#include <optional>
#include <string>
#include <variant>

#include "common/base/error.h"
#include "common/core/metrics_address.h"
#include "nri/connect.h"
#include "nri/session.h"

namespace podqos::nri {

/// What the command line says.
struct Options {
  std::optional<std::string> socket;
  std::optional<std::string> config;
  std::optional<std::string> index;
  std::optional<std::string> name;
  std::optional<core::MetricsAddress> metrics;
  friend bool operator==(const Options&, const Options&) = default;
};

/// A command line that asks for nothing but text, or is wrong.
struct Answer {
  int status = 0;    ///< 0 asked for, for standard output; 2 wrong usage, for standard error
  std::string text;  ///< whole lines
  friend bool operator==(const Answer&, const Answer&) = default;
};

[[nodiscard]] std::variant<Options, Answer> parse_options(int argc, const char* const* argv);

/// Who the plugin is, from the strongest source: the command line, the runtime that has started it,
/// "podqos" and "10". Plugins are called in the order of their indices, and see what those before
/// them have set: 10 is early, so that plugins that look at a container's cgroup see where it will
/// be.
/// @return kInvalidArgument: an index or a name that a runtime would refuse.
[[nodiscard]] Result<SessionOptions> identity_for(const Options& options,
                                                  const std::optional<Launch>& launch);

}  // namespace podqos::nri
