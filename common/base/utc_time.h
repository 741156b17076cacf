#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/units.h"

namespace podqos {

/// "2026-01-31T23:59:59.999Z" (RFC 3339), without the C library, which would read the time zone
/// database.
[[nodiscard]] std::string format_utc(UnixMillis time);
/// Parses what format_utc() returns; nullopt for anything else.
[[nodiscard]] std::optional<UnixMillis> parse_utc(std::string_view text);

}  // namespace podqos
