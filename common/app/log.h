#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/core/settings.h"

namespace podqos::app {

/// Text that stays one line whatever paths and names of strangers are in it: control bytes become
/// \xNN.
[[nodiscard]] std::string one_line(std::string_view text);

/// The program's log: one line a call, through spdlog to syslog or a file. The sink is opened by
/// the first line that is really written, so that an event with nothing to say costs nothing. A
/// line that the receiver has no room for at once is lost: a log daemon that hangs must not keep
/// containers from starting.
class Log {
 public:
  /// @param program  "podqos-hook", "podqosctl": the name that syslog shows.
  Log(std::string program, const core::Settings& settings);
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  Log(Log&&) noexcept;
  Log& operator=(Log&&) noexcept;
  ~Log();

  /// Is a debug line worth putting together?
  [[nodiscard]] bool shows_debug() const { return threshold_ == core::LogLevel::kDebug; }
  void debug(std::string_view line) { write(core::LogLevel::kDebug, line); }
  void info(std::string_view line) { write(core::LogLevel::kInfo, line); }
  void warning(std::string_view line) { write(core::LogLevel::kWarning, line); }
  void error(std::string_view line) { write(core::LogLevel::kError, line); }

 private:
  struct Sink;
  void write(core::LogLevel level, std::string_view line);

  std::string program_;
  std::string sink_name_;
  core::LogLevel threshold_;
  std::unique_ptr<Sink> sink_;
};

}  // namespace podqos::app
