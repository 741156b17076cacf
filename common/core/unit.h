#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace podqos::core {

/// Value of a property of a systemd unit, by its type on D-Bus: b, t, s, as, au.
using UnitValue = std::variant<bool, std::uint64_t, std::string, std::vector<std::string>,
                               std::vector<std::uint32_t>>;

struct UnitProperty {
  std::string name;  ///< "CPUWeight"
  UnitValue value;
  friend bool operator==(const UnitProperty&, const UnitProperty&) = default;
};

}  // namespace podqos::core
