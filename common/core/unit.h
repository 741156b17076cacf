#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace podqos::core {

/// Value of a property of a systemd unit, by its type on D-Bus: b, t, s, as, au.
using UnitValue = std::variant<bool, std::uint64_t, std::string, std::vector<std::string>,
                               std::vector<std::uint32_t>>;

/// What systemd takes for "no limit".
constexpr std::uint64_t kUnitInfinity = ~std::uint64_t{0};

struct UnitProperty {
  std::string name;  ///< "CPUWeight"
  UnitValue value;
  friend bool operator==(const UnitProperty&, const UnitProperty&) = default;
};

/// As systemctl shows it: "yes", "39", "infinity"; texts in quotes, lists with commas.
[[nodiscard]] std::string format_unit_value(const UnitValue& value);

}  // namespace podqos::core
