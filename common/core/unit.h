#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace podqos::core {

/// Value of a systemd unit property, of the D-Bus type b, t, s, as or au.
using UnitValue = std::variant<bool, std::uint64_t, std::string, std::vector<std::string>,
                               std::vector<std::uint32_t>>;

/// systemd's "infinity": no limit.
constexpr std::uint64_t kUnitInfinity = ~std::uint64_t{0};

/// A property of a systemd unit.
/// @note org.freedesktop.systemd1(5).
struct UnitProperty {
  std::string name;  ///< "CPUWeight"
  UnitValue value;
  friend bool operator==(const UnitProperty&, const UnitProperty&) = default;
};

/// Formats a value as systemctl does: "yes", "39", "infinity". Strings are quoted, lists are joined
/// by commas.
[[nodiscard]] std::string format_unit_value(const UnitValue& value);

}  // namespace podqos::core
