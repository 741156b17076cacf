#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/units.h"
#include "ctl/configure/program.h"

namespace podqos::ctl {

/// What systemd says of a unit, see org.freedesktop.systemd1(5).
struct UnitState {
  bool installed = false;  ///< LoadState is not "not-found"
  bool masked = false;
  bool enabled = false;
  bool active = false;
  bool failed = false;
  std::optional<Pid> process = std::nullopt;  ///< MainPID
  std::string status = {};                    ///< StatusText
};

/// By the names of units; one that systemd does not know is not installed.
using Units = std::map<std::string, UnitState, std::less<>>;

/// Parses what `systemctl show` prints of several units.
[[nodiscard]] Units parse_units(std::string_view text);

/// Asks systemd about these units.
/// @param names  at least one
/// @return kUnsupported if it says of none; the error of systemctl(1)
[[nodiscard]] Result<Units> read_units(std::span<const std::string> names, const Run& run);

}  // namespace podqos::ctl
