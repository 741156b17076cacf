#pragma once

#include <poll.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/app/log.h"
#include "common/base/error.h"
#include "common/sys/clock.h"
#include "common/sys/fd.h"
#include "nri/connect.h"
#include "nri/handler.h"
#include "nri/http_server.h"
#include "nri/link.h"
#include "nri/notify.h"
#include "nri/session.h"
#include "nri/signals.h"

namespace podqos::nri {

/// How long the plugin waits for a runtime.
struct Timeouts {
  std::chrono::milliseconds first_retry{100};     ///< doubles with each attempt that fails
  std::chrono::milliseconds longest_retry{5000};  ///< and, for a connection, long enough to be good
  /// From the connection to Configure: a runtime takes plugins one by one, each in up to 9 s.
  std::chrono::milliseconds configure{60'000};
  /// From Configure to a Synchronize that succeeded: NRI up to 0.6 keeps the connection of a plugin
  /// that it has given up.
  std::chrono::milliseconds synchronize{10'000};
  /// Between two looks at what the runtime does not tell of.
  std::chrono::milliseconds housekeeping{2000};
  /// Between two pieces of it; those who wait for the lock look for it every 5 ms at least.
  std::chrono::milliseconds piece{10};
};

struct ServiceOptions {
  SessionOptions session;  ///< `events` is for the first connection
  std::string socket = kDefaultSocket;
  Timeouts timeouts;
};

/// How the plugin stands with the runtime.
struct ConnectionStatus {
  bool connected = false;
  bool synchronized = false;      ///< the runtime counts on this plugin
  sys::Clock::TimePoint since;    ///< when it became so
  std::uint64_t connections = 0;  ///< that were made so far
  std::string obstacle;           ///< why it is not synchronized, for people
  friend bool operator==(const ConnectionStatus&, const ConnectionStatus&) = default;
};

/// What the service works with; all outlive it.
struct ServicePorts {
  Handler& handler;
  Signals& signals;
  const Notify& notify;
  app::Log& log;
  std::function<void()> reload;  ///< at SIGHUP
  /// From time to time, while the runtime counts on the plugin; it may not have been synchronized.
  /// Again after the next requests, if it returns true.
  std::function<bool()> housekeep;
  HttpServer* http = nullptr;  ///< nullptr: nobody may ask
  /// What it shows at a path.
  std::function<HttpAnswer(std::string_view path, const ConnectionStatus&)> page = {};
  const sys::Clock& clock = sys::kSteadyClock;
};

/// The plugin's one loop: keeps one connection to the runtime, makes it anew when it has ended, and
/// sees to signals, systemd and whoever asks for
/// metrics in between. Everything happens in the thread that calls run().
class Service {
 public:
  Service(ServiceOptions options, ServicePorts ports);

  /// Serves a runtime that listens at the socket's path, and those after it, until told to stop.
  /// @return an error only where the machine refuses what nobody can do without.
  [[nodiscard]] Status run();
  /// Serves the runtime that started this plugin, and ends with it.
  [[nodiscard]] Status run_launched(sys::UniqueFd socket);

  [[nodiscard]] const ConnectionStatus& status() const { return status_; }

 private:
  using TimePoint = sys::Clock::TimePoint;
  enum class Origin : std::uint8_t { kByPath, kLaunched };

  [[nodiscard]] Status loop();
  [[nodiscard]] Status wait();
  void read_signals();
  /// Does the runtime tell the plugin of what happens, as far as can be seen?
  [[nodiscard]] bool counts_on_plugin() const;
  void apply_deadlines();
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

  void try_to_connect();
  [[nodiscard]] Status make_link(sys::UniqueFd socket);
  void serve_link(short ready);
  void serve_http();
  void observe_progress();
  void end_link(const Error& reason);
  void retry_later();
  /// @param obstacle  empty if it is synchronized.
  void set_status(bool connected, std::string obstacle);

  ServiceOptions options_;
  ServicePorts ports_;
  Origin origin_ = Origin::kByPath;
  std::string peer_;  ///< who is at the other end, for people
  std::optional<Link> link_;
  Progress progress_ = Progress::kRegistering;  ///< as it was noted last
  ConnectionStatus status_;
  std::string last_failure_;  ///< the reason that was logged last for having no connection
  std::chrono::milliseconds retry_;
  TimePoint next_attempt_;
  std::optional<TimePoint> timeout_;  ///< when the link has lasted too long as it is
  std::optional<TimePoint> next_watchdog_;
  TimePoint next_housekeeping_;
  std::vector<pollfd> polled_;  ///< signals, the link, and what the HTTP server waits for
  bool stopping_ = false;
};

}  // namespace podqos::nri
