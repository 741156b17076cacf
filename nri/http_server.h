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

namespace podqos::nri {

/// The statuses of RFC 9110 that podqos-nri answers with, as they stand in the status line.
constexpr std::string_view kHttpOk = "200 OK";
constexpr std::string_view kHttpBadRequest = "400 Bad Request";
constexpr std::string_view kHttpNotFound = "404 Not Found";
constexpr std::string_view kHttpMethodNotAllowed = "405 Method Not Allowed";
constexpr std::string_view kHttpUnavailable = "503 Service Unavailable";

/// What a client asks for.
struct HttpRequest {
  std::string_view status = kHttpOk;  ///< kHttpOk, or the error to answer with
  bool head_only = false;             ///< HEAD: the answer has no body
  std::string_view path = {};         ///< of the target, without its query; not decoded
};

/// Parses the request line at the front of `text`, which has to be that of a GET or HEAD of HTTP/1
/// for a path. Header fields are not read: no answer depends on them.
[[nodiscard]] HttpRequest parse_http_request(std::string_view text);

/// A page or an error.
struct HttpAnswer {
  std::string_view status = kHttpOk;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

/// Answers GET and HEAD on a listening socket, within the caller's event loop, without blocking. A
/// connection serves one request, of at most kMaxRequest bytes, and lasts no longer than the
/// timeout. No client can delay the others: in each turn requests that have come are answered, and
/// then one connection is accepted. Where there are too many, the address that has most of them
/// loses its oldest, so that whatever clients at fewer than kMaxConnections / 2 addresses do, one
/// that has a connection or two at its own keeps them until its request has come.
class HttpServer {
 public:
  using Clock = std::chrono::steady_clock;
  /// Computes the page at a path, or an error.
  using Pages = std::function<HttpAnswer(std::string_view path)>;
  static constexpr std::size_t kMaxConnections = 256;  ///< that wait for their client's request
  static constexpr std::size_t kMaxUnread = 8;  ///< whose client leaves a part of its answer unread
  static constexpr std::size_t kMaxRequest = 2048;  ///< bytes, header fields included

  /// @param listener  non-blocking listening socket, which outlives the server; -1: none
  /// @param timeout   maximum duration of a connection
  explicit HttpServer(int listener, std::chrono::milliseconds timeout = std::chrono::seconds{2})
      : listener_(listener), timeout_(timeout) {}

  /// Appends the descriptors to poll(2) for: the listener, then each connection.
  void add_to(std::vector<pollfd>& polled) const;
  /// When serve() has to be called although poll(2) reports nothing; nullopt: never.
  [[nodiscard]] std::optional<Clock::time_point> next_deadline() const;
  /// Accepts, reads and writes without blocking.
  /// @param polled  the entries that add_to() appended, after poll(2)
  void serve(std::span<const pollfd> polled, const Pages& pages, Clock::time_point now);

 private:
  struct Connection {
    sys::UniqueFd socket = {};
    std::string address = {};  ///< its client's, in network byte order; "" at a unix socket
    Clock::time_point deadline = {};
    std::string input = {};   ///< the request so far
    std::string output = {};  ///< bytes of the answer that are still to be sent
    bool answered = false;    ///< the answer was computed
    bool over = false;        ///< to be closed
  };

  void accept(Clock::time_point now);
  /// Ends the oldest connection of the address that has most, if `most` are in this state: their
  /// answer is partly unread, or not.
  void make_room(bool unread, std::size_t most);
  void receive(Connection& connection, const Pages& pages);
  static void send(Connection& connection);

  int listener_;
  std::chrono::milliseconds timeout_;
  std::vector<Connection> connections_;  ///< oldest first
  /// No accept(2) until then, after an error such as EMFILE.
  std::optional<Clock::time_point> deaf_until_;
};

}  // namespace podqos::nri
