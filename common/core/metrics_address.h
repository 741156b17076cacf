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

/// A TCP port on the loopback interface, or on all interfaces of the network namespace.
struct TcpPort {
  std::string host;        ///< an address in 127.0.0.0/8, or "::1"; all: "0.0.0.0" or "::"
  std::uint16_t port = 0;  ///< 1 to 65535
  friend bool operator==(const TcpPort&, const TcpPort&) = default;
};

/// Where podqos-nri serves its metrics. Other machines can reach only what names all interfaces,
/// which is meant for a pod with a network of its own: a kubelet's probes come to the pod's
/// address.
using MetricsAddress = std::variant<UnixSocket, TcpPort>;

/// Parses "unix:/run/podqos/metrics.sock", "127.0.0.1:9464", "[::1]:9464", "0.0.0.0:9464" or
/// "[::]:9464".
/// @return kInvalidArgument for another form, a path that a socket cannot have, or the address of
/// one
///         interface that other machines could reach
[[nodiscard]] Result<MetricsAddress> parse_metrics_address(std::string_view text);
/// The text from which parse_metrics_address() makes `address`.
[[nodiscard]] std::string format_metrics_address(const MetricsAddress& address);

}  // namespace podqos::core
