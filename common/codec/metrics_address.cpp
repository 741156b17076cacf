#include "common/codec/metrics_address.h"

#include <arpa/inet.h>

#include <cstddef>
#include <optional>

#include "common/base/text.h"

namespace podqos::codec {

namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kLoopback6 = "[::1]";
constexpr std::string_view kAll4 = "0.0.0.0";
constexpr std::string_view kAll6 = "[::]";
constexpr std::size_t kMaxSocketPath = 107;  // sun_path of unix(7) without its final NUL

std::unexpected<Error> refuse(std::string_view text, std::string_view why) {
  return fail(ErrorCode::kInvalidArgument, cat("\"", printable(text), "\" ", why));
}

bool is_loopback4(const std::string& host) {
  in_addr address{};
  return !host.contains('\0') && ::inet_pton(AF_INET, host.c_str(), &address) == 1 &&
         ntohl(address.s_addr) >> 24U == IN_LOOPBACKNET;
}

/// A decimal number without sign or leading zeros; nullopt for others.
std::optional<std::uint16_t> parse_port(std::string_view text) {
  const auto number = parse_int(text);
  if (text.empty() || text.front() < '1' || text.front() > '9' || !number || *number > UINT16_MAX)
    return std::nullopt;
  return static_cast<std::uint16_t>(*number);
}

Result<core::MetricsAddress> parse_unix(std::string_view text, std::string_view path) {
  if (!path.starts_with('/') || path.ends_with('/') || cat(path, "/").contains("/../") ||
      plain_length(path) != path.size())
    return refuse(text, "is not a socket path: expected unix: and an absolute path without \"..\"");
  if (path.size() > kMaxSocketPath)
    return refuse(text, cat("is not a socket path: it has ", path.size(), " bytes, at most ",
                            kMaxSocketPath, " are allowed"));
  return core::UnixSocket{std::string{path}};
}

}  // namespace

Result<core::MetricsAddress> parse_metrics_address(std::string_view text) {
  if (text.starts_with(kUnix)) return parse_unix(text, text.substr(kUnix.size()));
  const std::size_t colon = text.rfind(':');
  const auto port =
      colon == std::string_view::npos ? std::nullopt : parse_port(text.substr(colon + 1));
  if (!port || colon == 0)
    return refuse(text,
                  "is not a metrics address: expected one of unix:/run/podqos/metrics.sock, "
                  "127.0.0.1:9464, [::1]:9464");
  const std::string host{text.substr(0, colon)};
  if (host == kLoopback6) return core::TcpPort{.host = "::1", .port = *port};
  if (host == kAll6) return core::TcpPort{.host = "::", .port = *port};
  if (host == kAll4 || is_loopback4(host)) return core::TcpPort{.host = host, .port = *port};
  return refuse(
      text,
      "is not a loopback address: expected a unix socket, 127.0.0.1 or [::1], or in a pod with "
      "a network of its own 0.0.0.0 or [::]");
}

std::string format_metrics_address(const core::MetricsAddress& address) {
  if (const auto* socket = std::get_if<core::UnixSocket>(&address)) return cat(kUnix, socket->path);
  const auto& [host, port] = std::get<core::TcpPort>(address);
  return host.contains(':') ? cat("[", host, "]:", port) : cat(host, ":", port);
}

}  // namespace podqos::codec
