#include "nri/http_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <utility>

#include "common/base/text.h"
#include "nri/connect.h"

namespace podqos::nri {

namespace {

/// How long no connection is accepted after an error of accept(2), such as EMFILE.
constexpr std::chrono::milliseconds kDeafness{1000};

/// The reason phrases of RFC 9110, section 15.
std::string_view reason_for(HttpStatus status) {
  switch (status) {
    case HttpStatus::kOk: return "OK";
    case HttpStatus::kBadRequest: return "Bad Request";
    case HttpStatus::kNotFound: return "Not Found";
    case HttpStatus::kMethodNotAllowed: return "Method Not Allowed";
    case HttpStatus::kUriTooLong: return "URI Too Long";
    case HttpStatus::kHeadTooLarge: return "Request Header Fields Too Large";
    case HttpStatus::kNotImplemented: return "Not Implemented";
    case HttpStatus::kUnavailable: return "Service Unavailable";
    case HttpStatus::kVersionNotSupported: return "HTTP Version Not Supported";
  }
  return "";
}

/// The current time as an HTTP date; RFC 9110, section 6.6.1 requires it of servers with a clock.
std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  std::array<char, 32> text{};
  if (::gmtime_r(&now, &parts) == nullptr) return "";
  const std::size_t size =
      std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return {text.data(), size};
}

/// The bytes of an answer.
/// @param head_only  omits the body, for HEAD
std::string format_answer(const HttpAnswer& answer, bool head_only) {
  const bool refused = answer.status == HttpStatus::kMethodNotAllowed;
  return cat("HTTP/1.1 ", static_cast<int>(answer.status), " ", reason_for(answer.status),
             "\r\nDate: ", http_date(), "\r\nContent-Type: ", answer.content_type,
             "\r\nContent-Length: ", answer.body.size(), refused ? "\r\nAllow: GET, HEAD" : "",
             "\r\nConnection: close\r\n\r\n", head_only ? "" : answer.body);
}

}  // namespace

void HttpServer::add_to(std::vector<pollfd>& polled) const {
  // poll(2) passes over a negative descriptor.
  polled.push_back({.fd = deaf_until_ ? -1 : listener_, .events = POLLIN, .revents = 0});
  for (const Connection& connection : connections_) {
    polled.push_back({.fd = connection.socket.get(),
                      .events = connection.output.empty() ? short{POLLIN} : short{POLLOUT},
                      .revents = 0});
  }
}

std::optional<HttpServer::Clock::time_point> HttpServer::next_deadline() const {
  auto earliest = deaf_until_;
  for (const Connection& connection : connections_)
    if (!earliest || connection.deadline < *earliest) earliest = connection.deadline;
  return earliest;
}

void HttpServer::serve(std::span<const pollfd> polled, const Pages& pages, Clock::time_point now) {
  bool asked = false;
  // New connections are appended after those that were polled.
  for (std::size_t i = 0; i < connections_.size() && i + 1 < polled.size(); ++i) {
    Connection& connection = connections_[i];
    if (now >= connection.deadline) connection.over = true;
    const bool ready = polled[i + 1].revents != 0;
    connection.idle = !connection.answered && (!ready || !asked);
    if (connection.over || !ready) continue;
    if (connection.answered) {
      send(connection);
    } else if (!asked) {
      receive(connection, pages);
      asked = connection.answered;
    }
  }
  std::erase_if(connections_, [](const Connection& connection) { return connection.over; });
  limit_unread();
  if (deaf_until_ && now >= *deaf_until_) deaf_until_.reset();
  if (!polled.empty() && polled.front().revents != 0) accept(now);
}

std::size_t HttpServer::count_unread() const {
  return static_cast<std::size_t>(std::ranges::count_if(connections_, &Connection::unread));
}

void HttpServer::limit_unread() {
  while (count_unread() > kMaxUnread)
    connections_.erase(std::ranges::find_if(connections_, &Connection::unread));
}

/// Accepts at most kMaxConnections per turn: each is read once before it may be replaced.
void HttpServer::accept(Clock::time_point now) {
  for (std::size_t accepted = 0; accepted < kMaxConnections;) {
    const bool full = connections_.size() - count_unread() >= kMaxConnections;
    const auto oldest = std::ranges::find_if(connections_, &Connection::gives_way);
    if (full && oldest == connections_.end()) return;
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    const int err = errno;
    if (socket < 0) {
      if (err == ECONNABORTED || err == EINTR) continue;
      // Any other error would make poll(2) return at once, as long as it persists.
      if (err != EAGAIN) deaf_until_ = now + kDeafness;
      return;
    }
    if (full) connections_.erase(oldest);
    connections_.push_back(
        {.socket = sys::UniqueFd{socket}, .deadline = now + timeout_, .request = {}, .output = {}});
    ++accepted;
  }
}

void HttpServer::receive(Connection& connection, const Pages& pages) {
  std::array<char, HttpRequest::kMaxHead> piece;
  const ssize_t size = ::read(connection.socket.get(), piece.data(), piece.size());
  if (size <= 0) {
    connection.over = size == 0 || !is_later(errno);
    return;
  }
  HttpRequest& request = connection.request;
  if (!request.feed({piece.data(), static_cast<std::size_t>(size)})) return;
  const HttpStatus status = request.status();
  const HttpAnswer answer =
      status == HttpStatus::kOk
          ? pages(request.path())
          : HttpAnswer{.status = status, .body = cat(reason_for(status), "\n")};
  connection.output = format_answer(answer, request.is_head());
  connection.answered = true;
  send(connection);
}

void HttpServer::send(Connection& connection) {
  std::string& output = connection.output;
  if (output.empty()) {
    wait_for_the_end(connection);
    return;
  }
  const ssize_t size = ::send(connection.socket.get(), output.data(), output.size(), MSG_NOSIGNAL);
  if (size < 0) {
    connection.over = !is_later(errno);
    return;
  }
  output.erase(0, static_cast<std::size_t>(size));
  // close(2) with unread input would reset the connection, and discard the answer at the peer.
  if (output.empty() && ::shutdown(connection.socket.get(), SHUT_WR) != 0) connection.over = true;
}

void HttpServer::wait_for_the_end(Connection& connection) {
  std::array<char, HttpRequest::kMaxHead> piece;
  const ssize_t size = ::read(connection.socket.get(), piece.data(), piece.size());
  if (size == 0 || (size < 0 && !is_later(errno))) connection.over = true;
}

}  // namespace podqos::nri
