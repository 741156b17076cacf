#pragma once

#include <memory>
#include <string>

#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>

namespace podqos::app {

/// Where a program's log goes. A line that cannot be written at once is dropped.
class LogSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  /// Sets fields of the journal for the lines that follow, where the journal takes them.
  /// @param fields  lines "PODQOS_POD=42\n", without control bytes in the values
  void set_fields(std::string fields) { fields_ = std::move(fields); }

 protected:
  [[nodiscard]] const std::string& fields() const { return fields_; }

 private:
  void flush_() override {}

  std::string fields_;
};

/// Opens the sink: "syslog", "stderr", or the path of a file. "syslog" is systemd's journal, by its
/// own protocol, where there is one, and else the log daemon at /dev/log.
/// @note systemd, docs/JOURNAL_NATIVE_PROTOCOL.md
[[nodiscard]] std::shared_ptr<LogSink> open_sink(const std::string& name);

}  // namespace podqos::app
