#include "common/cgroup/systemd.h"

#include <utility>
#include <variant>

#include "common/base/text.h"
#include "common/cgroup/bus.h"
#include "common/cgroup/bus_message.h"
#include "common/core/cgroups/naming.h"

namespace podqos::cgroup {

namespace {

/// A conflicting queued job is replaced rather than the new one refused.
constexpr const char* kReplace = "replace";

/// Makes a call about a unit, with what comes after its name.
Result<Message> call(Bus& bus, const char* method, std::vector<Argument> arguments,
                     Bus::Unloaded unloaded = Bus::Unloaded::kFails) {
  const std::string& unit = std::get<UnitName>(arguments.front()).text;
  return bus.call(cat(method, " ", printable(unit)), manager_call(method, arguments), unloaded);
}

Status status_of(const Result<Message>& answer) {
  if (!answer) return fail(answer.error());
  return {};
}

}  // namespace

Systemd::Systemd(SystemdOptions options) : bus_(std::make_unique<Bus>(std::move(options))) {}
Systemd::~Systemd() = default;
Systemd::Systemd(Systemd&&) noexcept = default;
Systemd& Systemd::operator=(Systemd&&) noexcept = default;

Status Systemd::start_transient(const std::string& unit,
                                const std::vector<core::UnitProperty>& properties) {
  return status_of(
      call(*bus_, "StartTransientUnit", {UnitName{unit}, kReplace, properties, NoUnits{}}));
}

Status Systemd::start(const std::string& unit) {
  return status_of(call(*bus_, "StartUnit", {UnitName{unit}, kReplace}));
}

Status Systemd::set_properties(const std::string& unit,
                               const std::vector<core::UnitProperty>& properties) {
  return status_of(
      call(*bus_, "SetUnitProperties", {UnitName{unit}, /*runtime*/ true, properties}));
}

Status Systemd::stop(const std::string& unit) {
  return status_of(call(*bus_, "StopUnit", {UnitName{unit}, kReplace}, Bus::Unloaded::kIsFine));
}

Status Systemd::reset_failed(const std::string& unit) {
  return status_of(call(*bus_, "ResetFailedUnit", {UnitName{unit}}, Bus::Unloaded::kIsFine));
}

Result<bool> Systemd::holds(const std::string& cgroup) {
  constexpr const char* kMethod = "GetUnitByControlGroup";
  PODQOS_ASSIGN(const auto holder,
                bus_->call(cat(kMethod, " ", printable(cgroup)), manager_call(kMethod, {cgroup}),
                           Bus::Unloaded::kIsFine));
  if (!holder) return false;
  PODQOS_ASSIGN(const auto unit,
                call(*bus_, "GetUnit", {UnitName{std::string{core::unit_of(cgroup)}}},
                     Bus::Unloaded::kIsFine));
  if (!unit) return false;
  const std::string path = parse_object_path(holder.get());
  return !path.empty() && path == parse_object_path(unit.get());
}

Result<std::vector<ListedUnit>> Systemd::list(const std::string& pattern) {
  using Texts = std::vector<std::string>;
  constexpr const char* kMethod = "ListUnitsByPatterns";
  const std::string what = cat(kMethod, " ", printable(pattern));
  // Those in any state.
  PODQOS_ASSIGN(const auto reply,
                bus_->call(what, manager_call(kMethod, {Texts{}, Texts{pattern}})));
  auto units = parse_units(reply.get());
  if (!units) return fail(std::move(units).error().with_context(what));
  return units;
}

int Systemd::round_trips() const {
  return bus_->round_trips();
}

}  // namespace podqos::cgroup
