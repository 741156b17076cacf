#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/core/settings.h"

namespace spdlog {
class logger;  // NOLINT(readability-identifier-naming): the library's name
}

namespace podqos::app {

/// Replaces control bytes by \xNN, so that text from untrusted paths and names stays on one line.
[[nodiscard]] std::string one_line(std::string_view text);

/// The program's log: one line per call, through spdlog to syslog or a file. The sink is opened
/// when the first line is written, so that a transaction that logs nothing costs nothing. A line
/// that cannot be sent at once is dropped: a blocked log daemon must not keep containers from
/// starting.
class Log {
 public:
  /// @param program  the name shown in syslog: "podqos-hook", "podqosctl"
  /// @param settings  log level and sink: "syslog", "stderr", "none" or the path of a file
  Log(std::string program, const core::Settings& settings);

  /// Write one line at the given level; lines below the configured level are dropped.
  void debug(std::string_view line) { write(core::LogLevel::kDebug, line); }
  void info(std::string_view line) { write(core::LogLevel::kInfo, line); }
  void warning(std::string_view line) { write(core::LogLevel::kWarning, line); }
  void error(std::string_view line) { write(core::LogLevel::kError, line); }

 private:
  void write(core::LogLevel level, std::string_view line);

  std::string program_;
  std::string sink_name_;
  core::LogLevel threshold_;
  std::shared_ptr<spdlog::logger> logger_;
};

}  // namespace podqos::app
