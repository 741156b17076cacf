#pragma once

#include <poll.h>

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
#include "nri/connection.h"
#include "nri/http_server.h"
#include "nri/notify.h"
#include "nri/sockets.h"

namespace podqos::nri {

/// How long a Service waits for a runtime, and how often it does what no runtime asks for.
struct ServiceTimes {
  /// After the end of a connection; doubles with each one that ends before the synchronization.
  std::chrono::milliseconds first_retry{100};
  std::chrono::milliseconds longest_retry{5000};
  /// Between two attempts while no runtime listens: one that is back is without podqos for so long.
  std::chrono::milliseconds absent{200};
  /// From the connection to Configure: a runtime handles plugins one by one, each in up to 9 s.
  std::chrono::milliseconds configure{60'000};
  /// From Configure to a successful Synchronize: NRI up to 0.6 keeps the connection of a plugin
  /// whose Synchronize failed, but sends it no events.
  std::chrono::milliseconds synchronize{10'000};
  /// Between two rounds of housekeeping.
  std::chrono::milliseconds housekeeping{2000};
  /// Between two attempts of a plugin that stands by to become the only one.
  std::chrono::milliseconds standby{50};
  /// Between two pieces of a round; waiters for the lock poll it at least every 5 ms.
  std::chrono::milliseconds piece{10};
};

/// Identity and connection parameters of the plugin.
struct ServiceOptions {
  ConnectionOptions session;  ///< `newest_events` applies to the first connection
  std::string socket = kDefaultSocket;
  ServiceTimes times;
};

/// The state of the connection to the runtime, for metrics and /readyz.
struct ConnectionStatus {
  bool connected = false;
  bool synchronized = false;      ///< the runtime sends events to this plugin
  bool standby = false;           ///< another plugin serves the runtime; this one follows it
  sys::Clock::TimePoint since;    ///< of the last change
  std::uint64_t connections = 0;  ///< made so far
  std::string obstacle;           ///< why it is not synchronized, as text for users; else ""
};

/// The dependencies of a Service; all outlive it.
struct ServicePorts {
  Handler& handler;
  int signals;  ///< of open_signals()
  const Notify& notify;
  app::Log& log;
  std::function<void()> reload;  ///< called at SIGHUP
  /// Called before the plugin connects, until it succeeds; kTimeout: another plugin serves
  /// the runtime.
  std::function<Status()> hold;
  /// Called with the status that systemd gets, while this is the only plugin.
  std::function<void(std::string_view status)> record;
  /// Called regularly while the runtime sends events to the plugin. If it returns true, it is
  /// called again after pending requests.
  std::function<bool()> housekeep;
  HttpServer& http;
  /// Computes the page at a path.
  std::function<HttpAnswer(std::string_view path, const ConnectionStatus&)> page = {};
  const sys::Clock& clock = sys::kSteadyClock;
};

/// The plugin's event loop: keeps one connection to the runtime, reconnects when it has ended, and
/// handles signals, systemd and HTTP in between. Everything runs in the thread that calls run().
class Service {
 public:
  Service(ServiceOptions options, ServicePorts ports);

  /// Serves the runtime that listens at the socket's path, and its successors, until SIGTERM or
  /// SIGINT.
  /// @return the errors of poll(2), and of ServicePorts::hold but kTimeout; those of connections
  ///         are logged, and lead to a reconnect.
  [[nodiscard]] Status run();

  [[nodiscard]] const ConnectionStatus& status() const { return status_; }

 private:
  using TimePoint = sys::Clock::TimePoint;

  /// Polls all descriptors until one is ready or a deadline has passed.
  [[nodiscard]] Status wait();
  void read_signals();
  /// Does what is due: watchdog, housekeeping, timeout of the link, next attempt to connect.
  [[nodiscard]] Status apply_deadlines();
  [[nodiscard]] std::optional<TimePoint> next_deadline() const;

  /// Connects, or stands by; after an error schedules the next attempt.
  [[nodiscard]] Status try_to_connect();
  /// Becomes the only plugin, and connects.
  [[nodiscard]] Status connect();
  /// Logs an error of connect(), each reason once: a runtime may be absent for days.
  void log_failure(const Error& error);
  /// Checks the peer and registers the plugin on a connected socket.
  /// @return the errors of runtime_at()
  [[nodiscard]] Status make_link(sys::UniqueFd socket);
  void serve_link();
  /// Follows the progress of the link: sets status and timeouts.
  void observe_progress();
  /// Closes the link, and schedules the next attempt.
  void end_link(const Error& reason);
  void retry_later();
  /// Reports a status to systemd, and for podqosctl if this is the only plugin.
  void report(std::string_view status);
  /// Logs a line, and reports it.
  void announce(const std::string& line, void (app::Log::*write)(std::string_view));
  /// @param obstacle  "" if the plugin is synchronized
  void set_status(bool connected, std::string obstacle);

  ServiceOptions options_;
  ServicePorts ports_;
  std::string waiting_;  ///< the status without a runtime
  std::string peer_;     ///< description of the runtime for messages
  std::optional<Connection> link_;
  Progress progress_ = Progress::kRegistering;  ///< as last observed
  ConnectionStatus status_;
  std::string last_failure_;  ///< the last logged reason for a failed attempt
  std::chrono::milliseconds retry_;
  TimePoint next_attempt_;
  std::optional<TimePoint> timeout_;  ///< when the link ends unless it makes progress
  std::optional<TimePoint> next_watchdog_;
  TimePoint next_housekeeping_;
  std::vector<pollfd> polled_;  ///< signals, the link, and the descriptors of the HTTP server
  bool only_ = false;           ///< ServicePorts::hold has succeeded
  bool stopping_ = false;
};

}  // namespace podqos::nri
