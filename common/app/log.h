#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/core/events/event.h"
#include "common/core/settings.h"
#include "common/store/event_file.h"
#include "common/sys/directory.h"

namespace spdlog {
class logger;  // NOLINT(readability-identifier-naming): the library's name
}

namespace podqos::app {

class LogSink;

/// Replaces control bytes by \xNN, so that text from untrusted paths and names stays on one line.
[[nodiscard]] std::string one_line(std::string_view text);

/// The program's log: one line per call, through spdlog to syslog or a file; and its part of the
/// journal of events. The sink is opened when the first line is written, so that a transaction that
/// logs nothing costs nothing. A line that cannot be sent at once is dropped: a blocked log daemon
/// must not keep containers from starting.
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

  /// Logs the event's text, and records the event, whatever the level; its time and program are
  /// set here. Where it cannot be recorded, that is logged, and nothing else happens.
  /// @param context  precedes the text in the log, where it has to tell what the event's other
  ///                 members do
  /// @param state  the state directory, which has been checked; nullptr: the event is only logged
  void event(core::LogLevel level, core::Event event, std::string_view context,
             const sys::Directory* state);
  /// Records an event, and logs nothing else than why it could not be recorded.
  void record(core::Event event, const sys::Directory& state);
  /// As event(), for the error of a container that podqos failed to handle, outside a transaction.
  /// Makes the state directory if it is missing.
  /// @param event  what it does not tell of the container is taken from set_subject()
  void failure(core::Event event, std::string_view context = {});
  /// Lets failures be recorded only where the state directory exists: the configuration that would
  /// name it cannot be read.
  void use_existing_state() { makes_state_ = false; }
  /// Sets what is known of the container that is handled, for a failure that follows.
  void set_subject(core::Event subject) { subject_ = std::move(subject); }

 private:
  void write(core::LogLevel level, std::string_view line, const core::Event* event = nullptr);

  std::string program_;
  std::string sink_name_;
  core::LogLevel threshold_;
  std::shared_ptr<LogSink> sink_;
  std::shared_ptr<spdlog::logger> logger_;
  std::string state_dir_;
  store::EventWriter events_;
  core::Event subject_;
  bool makes_state_ = true;
};

}  // namespace podqos::app
