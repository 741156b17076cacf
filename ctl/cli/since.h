#pragma once

#include <optional>
#include <string>

#include "common/base/units.h"

namespace podqos::ctl {

/// Parses a point in time as journalctl's --since takes it: "10m" or "2h ago" before now (s, m,
/// min, h, d, w), "today", "yesterday", "15:04", "2026-01-31", "2026-01-31 15:04:05", with "T" in
/// place of the blank too, all in local time; "@1767225600"; and what `-o json` prints.
/// @return nullopt for anything else
/// @note systemd.time(7)
[[nodiscard]] std::optional<UnixMillis> parse_since(const std::string& text, UnixMillis now);

/// "Jan 31 15:04:05" in local time.
[[nodiscard]] std::string format_local(UnixMillis time);

}  // namespace podqos::ctl
