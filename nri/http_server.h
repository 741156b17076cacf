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

struct HttpAnswer {
  HttpStatus status = HttpStatus::kOk;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

/// Answers GET and HEAD on a listening socket, in the loop of somebody else: it waits for nothing,
/// and asks for at most one answer a turn. A connection lasts for one request and, whatever its
/// other end does, no longer than the time it is given. Of kMaxConnections the oldest that has not
/// sent its request, or has its whole answer, gives way to a new one, so that connections that stay
/// silent delay no request; while all are being answered, new ones wait in the kernel.
class HttpServer {
 public:
  using Clock = std::chrono::steady_clock;
  /// What there is at a path.
  using Pages = std::function<HttpAnswer(std::string_view path)>;
  static constexpr std::size_t kMaxConnections = 8;

  /// @param listener  non-blocking; outlives the server.
  /// @param timeout  from the connection to its end.
  explicit HttpServer(int listener, std::chrono::milliseconds timeout = kTimeout)
      : listener_(listener), timeout_(timeout) {}

  /// Appends what to poll(2) for.
  void add_to(std::vector<pollfd>& polled) const;
  /// When there is something to do although poll(2) reports nothing.
  [[nodiscard]] std::optional<Clock::time_point> next_deadline() const;
  /// Does what can be done.
  /// @param polled  what add_to() has appended, after poll(2).
  void serve(std::span<const pollfd> polled, const Pages& pages, Clock::time_point now);

 private:
  static constexpr std::chrono::milliseconds kTimeout{2000};

  struct Connection {
    sys::UniqueFd socket;
    Clock::time_point deadline;
    HttpRequest request;
    std::string output;  ///< what is still to be sent
    bool answered = false;
    bool over = false;
    bool idle = false;  ///< all that it has sent was read, and is not a whole request

    [[nodiscard]] bool gives_way() const { return answered ? output.empty() : idle; }
  };

  [[nodiscard]] std::vector<Connection>::iterator find_replaceable();
  void accept(Clock::time_point now);
  static void receive(Connection& connection, const Pages& pages);
  static void send(Connection& connection);
  static void wait_for_the_end(Connection& connection);

  int listener_;
  std::chrono::milliseconds timeout_;
  std::vector<Connection> connections_;
  std::optional<Clock::time_point> deaf_until_;  ///< for want of descriptors
};

}  // namespace podqos::nri
