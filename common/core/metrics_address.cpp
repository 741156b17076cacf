#include "common/core/metrics_address.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "common/base/text.h"

namespace podqos::core {

namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kLoopback6 = "[::1]";
constexpr std::string_view kAll4 = "0.0.0.0";
constexpr std::string_view kAll6 = "[::]";
constexpr std::size_t kMaxSocketPath = 107;  // sun_path of unix(7) without its final NUL

std::unexpected<Error> refuse(std::string_view text, std::string_view why) {
  return fail(ErrorCode::kInvalidArgument, cat("\"", printable(text), "\" ", why));
}

/// Parses a decimal number without sign or leading zeros, at most `max`.
std::optional<std::int64_t> parse_number(std::string_view text, std::int64_t max) {
  const bool padded = text.size() > 1 && text.starts_with('0');
  const auto number = padded || text.starts_with('-') ? std::nullopt : parse_int(text);
  return number && *number >= 0 && *number <= max ? number : std::nullopt;
}

bool is_loopback4(std::string_view host) {
  constexpr std::int64_t kNetwork = 127;
  constexpr int kParts = 4;
  int parts = 0;
  for (std::size_t begin = 0; begin <= host.size(); ++parts) {
    const std::size_t end = std::min(host.find('.', begin), host.size());
    const auto part = parse_number(host.substr(begin, end - begin), 255);
    if (!part || (parts == 0 && *part != kNetwork)) return false;
    begin = end + 1;
  }
  return parts == kParts;
}

Result<MetricsAddress> parse_unix(std::string_view text, std::string_view path) {
  if (!path.starts_with('/') || path.ends_with('/') || cat(path, "/").contains("/../") ||
      plain_length(path) != path.size())
    return refuse(text, "is not a socket path: expected unix: and an absolute path without \"..\"");
  if (path.size() > kMaxSocketPath)
    return refuse(text, cat("is not a socket path: it has ", path.size(), " bytes, at most ",
                            kMaxSocketPath, " are allowed"));
  return UnixSocket{std::string{path}};
}

}  // namespace

Result<MetricsAddress> parse_metrics_address(std::string_view text) {
  constexpr std::int64_t kMaxPort = 65535;
  if (text.starts_with(kUnix)) return parse_unix(text, text.substr(kUnix.size()));
  const std::size_t colon = text.rfind(':');
  const auto port = colon == std::string_view::npos
                        ? std::nullopt
                        : parse_number(text.substr(colon + 1), kMaxPort);
  if (!port || *port == 0 || colon == 0)
    return refuse(text,
                  "is not a metrics address: expected one of unix:/run/podqos/metrics.sock, "
                  "127.0.0.1:9464, [::1]:9464");
  const std::string_view host = text.substr(0, colon);
  const auto number = static_cast<std::uint16_t>(*port);
  if (host == kLoopback6) return TcpPort{.host = "::1", .port = number};
  if (host == kAll6) return TcpPort{.host = "::", .port = number};
  if (host == kAll4 || is_loopback4(host))
    return TcpPort{.host = std::string{host}, .port = number};
  return refuse(
      text,
      "is not a loopback address: expected a unix socket, 127.0.0.1 or [::1], or in a pod with "
      "a network of its own 0.0.0.0 or [::]");
}

std::string format_metrics_address(const MetricsAddress& address) {
  if (const auto* socket = std::get_if<UnixSocket>(&address)) return cat(kUnix, socket->path);
  const auto& [host, port] = std::get<TcpPort>(address);
  return host.contains(':') ? cat("[", host, "]:", port) : cat(host, ":", port);
}

}  // namespace podqos::core
