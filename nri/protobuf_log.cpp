#include "nri/protobuf_log.h"

#include <bit>
#include <cstddef>
#include <string>
#include <utility>

#if __has_include(<google/protobuf/stubs/logging.h>)
#include <google/protobuf/stubs/logging.h>
#else
#include <absl/base/log_severity.h>
#include <absl/log/globals.h>
#include <absl/log/log_entry.h>
#include <absl/log/log_sink.h>
#include <absl/log/log_sink_registry.h>
#endif

#include "common/base/text.h"

namespace podqos::nri {

namespace {

/// The receiver of libprotobuf's messages, and their number so far.
struct ProtobufMessages {
  std::function<void(std::string_view)> take;
  std::size_t count = 0;

  /// Counts a message, and passes on those whose number is a power of two.
  void add(std::string_view message) {
    constexpr std::size_t kMost = 200;
    ++count;
    if (take && std::has_single_bit(count))
      take(cat("libprotobuf: ", printable(message, kMost), " (message ", count, ")"));
  }
};

/// The one instance: the library passes no user pointer to a handler.
ProtobufMessages& messages() {
  static ProtobufMessages all;
  return all;
}

#if __has_include(<google/protobuf/stubs/logging.h>)

void install() {
  google::protobuf::SetLogHandler([](google::protobuf::LogLevel /*level*/, const char* /*file*/,
                                     int /*line*/,
                                     const std::string& message) { messages().add(message); });
}

#else

/// protobuf 22 and later log through Abseil.
class Sink : public absl::LogSink {
 public:
  void Send(const absl::LogEntry& entry) override { messages().add(entry.text_message()); }
};

void install() {
  static Sink sink;
  static const bool once = [] {
    absl::SetStderrThreshold(absl::LogSeverityAtLeast::kInfinity);
    absl::AddLogSink(&sink);
    return true;
  }();
  static_cast<void>(once);
}

#endif

}  // namespace

void set_protobuf_log(std::function<void(std::string_view)> take) {
  messages() = {.take = std::move(take)};
  install();
}

}  // namespace podqos::nri
