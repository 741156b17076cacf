#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/core/settings.h"

namespace podqos::codec {

/// Parses "unix:/run/podqos/metrics.sock", "127.0.0.1:9464", "[::1]:9464", "0.0.0.0:9464" or
/// "[::]:9464".
/// @return kInvalidArgument for another form, a path that a socket cannot have, or the address of
///         one interface that other machines could reach
[[nodiscard]] Result<core::MetricsAddress> parse_metrics_address(std::string_view text);
/// The text from which parse_metrics_address() makes `address`.
[[nodiscard]] std::string format_metrics_address(const core::MetricsAddress& address);

}  // namespace podqos::codec
