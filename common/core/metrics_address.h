#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "common/base/error.h"

namespace podqos::core {

/// A unix socket with a path, so that file permissions restrict access.
struct UnixSocket {
  std::string path;  ///< absolute, at most 107 bytes (unix(7))
  friend bool operator==(const UnixSocket&, const UnixSocket&) = default;
};

/// A TCP port on the loopback interface.
struct LoopbackPort {
  std::string host;        ///< an address in 127.0.0.0/8, or "::1"
  std::uint16_t port = 0;  ///< 1 to 65535
  friend bool operator==(const LoopbackPort&, const LoopbackPort&) = default;
};

/// Where podqos-nri serves its metrics. Never reachable from other machines.
using MetricsAddress = std::variant<UnixSocket, LoopbackPort>;

/// Parses "unix:/run/podqos/metrics.sock", "127.0.0.1:9464" or "[::1]:9464".
/// @return kInvalidArgument for another form, a path that a socket cannot have, or an address that
///         other machines could reach
[[nodiscard]] Result<MetricsAddress> parse_metrics_address(std::string_view text);
/// The text from which parse_metrics_address() makes `address`.
[[nodiscard]] std::string format_metrics_address(const MetricsAddress& address);

}  // namespace podqos::core
