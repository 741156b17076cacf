#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "common/base/error.h"

namespace podqos::core {

/// A unix socket with a path, so that the permissions of file and directory say who may look.
struct UnixSocket {
  std::string path;  ///< absolute
  friend bool operator==(const UnixSocket&, const UnixSocket&) = default;
};

struct LoopbackPort {
  std::string host;  ///< a number within 127.0.0.0/8, or "::1"
  std::uint16_t port = 0;
  friend bool operator==(const LoopbackPort&, const LoopbackPort&) = default;
};

/// Where podqos-nri shows its metrics: within this machine, whatever the configuration says.
using MetricsAddress = std::variant<UnixSocket, LoopbackPort>;

/// "unix:/run/podqos/metrics.sock", "127.0.0.1:9464", "[::1]:9464".
/// @return kInvalidArgument: no such text, a path that no socket can have, or an address that other
/// machines could reach.
[[nodiscard]] Result<MetricsAddress> parse_metrics_address(std::string_view text);
[[nodiscard]] std::string format_metrics_address(const MetricsAddress& address);

}  // namespace podqos::core
