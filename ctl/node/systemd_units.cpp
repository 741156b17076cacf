#include "ctl/node/systemd_units.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "ctl/configure/setup.h"

namespace podqos::ctl {
namespace {

constexpr const char* kProperties =
    "--property=Id,LoadState,ActiveState,UnitFileState,MainPID,StatusText";

void set_property(UnitState& unit, std::string_view name, std::string_view value) {
  if (name == "LoadState") unit.installed = value != "not-found";
  if (name == "LoadState") unit.masked = value == "masked";
  if (name == "ActiveState") unit.active = has_word("active reloading", value);
  if (name == "ActiveState") unit.failed = value == "failed";
  if (name == "UnitFileState") unit.enabled = value.starts_with("enabled");
  if (name == "StatusText") unit.status = value;
  const std::int64_t number = parse_int(value).value_or(0);
  if (name == "MainPID" && number > 0) unit.process = Pid{number};
}

}  // namespace

Units parse_units(std::string_view text) {
  Units units;
  std::string name;
  UnitState unit;
  while (!text.empty()) {
    std::string_view value = read_until(text, '\n');
    const std::string_view property = read_until(value, '=');
    if (property == "Id") name = value;
    set_property(unit, property, value);
    // An empty line ends a unit.
    if (property.empty() || text.empty()) units[std::exchange(name, {})] = std::exchange(unit, {});
  }
  units.erase("");
  return units;
}

Result<Units> read_units(std::span<const std::string> names, const Run& run) {
  std::vector<std::string> argv = {kSystemctl, "show", kProperties};
  std::ranges::copy(names, std::back_inserter(argv));
  PODQOS_ASSIGN(const auto text, run(argv));
  auto units = parse_units(text);
  // In a chroot systemctl(1) says nothing, and that it has done so.
  if (units.empty()) return fail(ErrorCode::kUnsupported, "systemd cannot be asked");
  return units;
}

}  // namespace podqos::ctl
