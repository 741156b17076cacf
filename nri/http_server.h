#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/sys/fd.h"
#include "nri/http_request.h"

namespace podqos::nri {

/// A page or an error.
struct HttpAnswer {
  HttpStatus status = HttpStatus::kOk;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

/// Answers GET and HEAD on a listening socket, within the caller's event loop: it never blocks, and
/// computes at most one answer per turn. A connection serves one request, of at most kMaxRequest
/// bytes, and lasts no longer than the timeout. No client can delay the others: at kMaxConnections
/// a new connection replaces the oldest one that waits for its client.
class HttpServer {
 public:
  using Clock = std::chrono::steady_clock;
  /// Computes the page at a path, or an error.
  using Pages = std::function<HttpAnswer(std::string_view path)>;
  static constexpr std::size_t kMaxConnections = 8;
  static constexpr std::size_t kMaxRequest = 2048;  ///< bytes, header fields included

  /// @param listener  non-blocking listening socket; outlives the server
  /// @param timeout   maximum duration of a connection
  explicit HttpServer(int listener, std::chrono::milliseconds timeout = kTimeout)
      : listener_(listener), timeout_(timeout) {}

  /// Appends the descriptors to poll(2) for: the listener, then each connection.
  void add_to(std::vector<pollfd>& polled) const;
  /// When serve() has to be called although poll(2) reports nothing; nullopt: never.
  [[nodiscard]] std::optional<Clock::time_point> next_deadline() const;
  /// Accepts, reads and writes without blocking.
  /// @param polled  the entries that add_to() appended, after poll(2)
  /// @param pages   called at most once
  void serve(std::span<const pollfd> polled, const Pages& pages, Clock::time_point now);

 private:
  static constexpr std::chrono::milliseconds kTimeout{2000};

  struct Connection {
    sys::UniqueFd socket;
    Clock::time_point deadline;
    std::string input = {};   ///< the request so far
    std::string output = {};  ///< bytes of the answer that are still to be sent
    bool answered = false;    ///< the answer was computed
    bool waits = false;       ///< for its client, as of the last poll(2)
    bool over = false;        ///< to be closed

    /// Whether a new connection may replace this one.
    [[nodiscard]] bool gives_way() const { return waits || (answered && output.empty()); }
  };

  void accept(Clock::time_point now);
  static void receive(Connection& connection, const Pages& pages);
  static void send(Connection& connection);

  int listener_;
  std::chrono::milliseconds timeout_;
  std::vector<Connection> connections_;  ///< oldest first
  std::optional<Clock::time_point>
      deaf_until_;  ///< no accept(2) until then, for lack of descriptors
};

}  // namespace podqos::nri
