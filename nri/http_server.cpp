#include "nri/http_server.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <map>

#include "common/base/text.h"
#include "nri/sockets.h"

namespace podqos::nri {

namespace {

/// How long no connection is accepted after an error of accept(2), such as EMFILE.
constexpr std::chrono::milliseconds kDeafness{1000};

/// The bytes of an answer.
std::string format_answer(const HttpAnswer& answer, bool head_only) {
  const bool refused = answer.status == kHttpMethodNotAllowed;
  return cat("HTTP/1.1 ", answer.status, "\r\nContent-Type: ", answer.content_type,
             "\r\nContent-Length: ", answer.body.size(), refused ? "\r\nAllow: GET, HEAD" : "",
             "\r\nConnection: close\r\n\r\n", head_only ? "" : answer.body);
}

/// The bytes of a client's address, without its port.
std::string address_of(const sockaddr_storage& client) {
  const bool is_six = client.ss_family == AF_INET6;
  if (!is_six && client.ss_family != AF_INET) return {};
  const auto* bytes = reinterpret_cast<const char*>(&client);
  return is_six ? std::string{bytes + offsetof(sockaddr_in6, sin6_addr), sizeof(in6_addr)}
                : std::string{bytes + offsetof(sockaddr_in, sin_addr), sizeof(in_addr)};
}

}  // namespace

HttpRequest parse_http_request(std::string_view text) {
  const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == last || !line.substr(last + 1).starts_with("HTTP/1."))
    return {.status = kHttpBadRequest};
  const std::string_view method = line.substr(0, first);
  if (method != "GET" && method != "HEAD") return {.status = kHttpMethodNotAllowed};
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (!target.starts_with('/')) return {.status = kHttpBadRequest};
  return {.head_only = method == "HEAD", .path = target.substr(0, target.find('?'))};
}

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
  // polled.front() is the listener's.
  for (std::size_t i = 0; i < connections_.size() && i + 1 < polled.size(); ++i) {
    Connection& connection = connections_[i];
    if (connection.over || now >= connection.deadline)
      connection.over = true;
    else if (polled[i + 1].revents != 0)
      connection.output.empty() ? receive(connection, pages) : send(connection);
  }
  if (deaf_until_ && now >= *deaf_until_) deaf_until_.reset();
  if (!polled.empty() && polled.front().revents != 0) accept(now);
  std::erase_if(connections_, [](const Connection& connection) { return connection.over; });
}

void HttpServer::accept(Clock::time_point now) {
  sockaddr_storage client{};
  socklen_t size = sizeof client;
  // The socket calls take every kind of address as a sockaddr.
  sys::UniqueFd socket{::accept4(listener_, reinterpret_cast<sockaddr*>(&client), &size,
                                 SOCK_NONBLOCK | SOCK_CLOEXEC)};
  if (const int err = errno; !socket.valid()) {
    // Another error would make poll(2) return at once, as long as it persists.
    if (!is_later(err) && err != ECONNABORTED) deaf_until_ = now + kDeafness;
    return;
  }
  make_room(false, kMaxConnections);
  connections_.push_back(
      {.socket = std::move(socket), .address = address_of(client), .deadline = now + timeout_});
}

void HttpServer::make_room(bool unread, std::size_t most) {
  const auto counts = [unread](const Connection& each) {
    return !each.over && each.output.empty() != unread;
  };
  std::map<std::string_view, std::size_t> of_address;
  std::size_t all = 0;
  for (const Connection& each : connections_) {
    if (!counts(each)) continue;
    ++of_address[each.address];
    ++all;
  }
  if (all < most) return;
  // The first of the largest is the oldest.
  const auto first = std::ranges::max_element(connections_, {}, [&](const Connection& each) {
    return counts(each) ? of_address[each.address] : 0;
  });
  *first = {.over = true};
}

void HttpServer::receive(Connection& connection, const Pages& pages) {
  std::string& input = connection.input;
  std::array<char, kMaxRequest> piece;
  const ssize_t size = ::read(connection.socket.get(), piece.data(), piece.size() - input.size());
  if (size <= 0) {
    connection.over = size == 0 || !is_later(errno);
    return;
  }
  // close(2) with unread input would reset the connection, and discard the answer at the peer.
  if (connection.answered) return;
  input.append(piece.data(), static_cast<std::size_t>(size));
  // It ends with an empty line (RFC 9112, section 2.1).
  const bool complete = input.contains("\n\r\n") || input.contains("\n\n");
  if (!complete && input.size() < kMaxRequest) return;
  const HttpRequest request =
      complete ? parse_http_request(input) : HttpRequest{.status = kHttpBadRequest};
  const HttpAnswer answer =
      request.status == kHttpOk
          ? pages(request.path)
          : HttpAnswer{.status = request.status, .body = cat(request.status.substr(4), "\n")};
  connection.output = format_answer(answer, request.head_only);
  connection.answered = true;
  input.clear();
  send(connection);
  make_room(true, kMaxUnread + 1);
}

void HttpServer::send(Connection& connection) {
  std::string& output = connection.output;
  const int socket = connection.socket.get();
  const ssize_t size = ::send(socket, output.data(), output.size(), MSG_NOSIGNAL);
  if (size < 0) {
    connection.over = !is_later(errno);
    return;
  }
  output.erase(0, static_cast<std::size_t>(size));
  if (output.empty()) connection.over = ::shutdown(socket, SHUT_WR) != 0;
}

}  // namespace podqos::nri
