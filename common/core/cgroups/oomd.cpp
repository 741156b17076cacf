#include "common/core/cgroups/oomd.h"

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "common/base/units.h"
#include "common/core/cgroups/naming.h"
#include "common/core/cgroups/value_table.h"

namespace podqos::core {

bool is_watched_by_oomd(std::string_view kubepods, const CgroupLayout& layout) {
  return driver_of(kubepods) == Driver::kSystemd && layout.memory == CgroupVersion::kV2;
}

std::vector<UnitProperty> optional_properties(const CgroupValues& values,
                                              const CgroupLayout& layout) {
  std::vector<UnitProperty> properties;
  for (const ValueRow& row : value_table()) {
    const auto version = layout.version_of(row.controller);
    if (!version || row.on(*version).setting == nullptr) continue;
    if (auto value = row.on(*version).setting(values))
      properties.push_back(
          {.name = std::string{row.on(*version).property}, .value = *std::move(value)});
  }
  return properties;
}

oomd::Setting oomd::mode(const CgroupValues& values) {
  if (!values.oomd_pressure) return std::nullopt;
  return UnitValue{std::string{values.oomd_pressure->percent > 0 ? "kill" : "auto"}};
}

oomd::Setting oomd::limit(const CgroupValues& values) {
  constexpr std::int64_t kWhole = std::numeric_limits<std::uint32_t>::max();
  if (!values.oomd_pressure) return std::nullopt;
  const std::int64_t scaled = (values.oomd_pressure->percent * kWhole + kPercent / 2) / kPercent;
  return UnitValue{static_cast<std::uint32_t>(scaled)};
}

oomd::Setting oomd::duration(const CgroupValues& values) {
  constexpr std::int64_t kMicrosPerSecond = 1'000'000;
  if (!values.oomd_pressure) return std::nullopt;
  const std::int64_t seconds = values.oomd_pressure->seconds;
  return UnitValue{seconds > 0 ? static_cast<std::uint64_t>(seconds * kMicrosPerSecond)
                               : kUnitInfinity};
}

oomd::Setting oomd::preference(const CgroupValues& values) {
  if (!values.oomd_avoid) return std::nullopt;
  return UnitValue{std::string{*values.oomd_avoid ? "avoid" : "none"}};
}

}  // namespace podqos::core
