#include "common/cgroup/systemd.h"

#include <cstddef>
#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/cgroup/bus.h"
#include "common/cgroup/bus_message.h"
#include "common/core/cgroups/naming.h"

namespace podqos::cgroup {

namespace {

/// A conflicting queued job is replaced rather than the new one refused.
constexpr const char* kReplace = "replace";

Status status_of(const Result<Message>& answer) {
  if (!answer) return fail(answer.error());
  return {};
}

/// A call about a unit, with what comes after its name.
Bus::Request about(const char* method, const std::string& unit, std::vector<Argument> more = {},
                   Bus::Unloaded unloaded = Bus::Unloaded::kFails) {
  more.insert(more.begin(), UnitName{unit});
  return {.what = cat(method, " ", printable(unit)),
          .message = manager_call(method, more),
          .unloaded = unloaded};
}

}  // namespace

Systemd::Systemd(SystemdOptions options) : bus_(std::make_unique<Bus>(std::move(options))) {}
Systemd::~Systemd() = default;
Systemd::Systemd(Systemd&&) noexcept = default;
Systemd& Systemd::operator=(Systemd&&) noexcept = default;

Status Systemd::start_transient(const std::string& unit,
                                const std::vector<core::UnitProperty>& properties) {
  return status_of(
      bus_->call(about("StartTransientUnit", unit, {kReplace, properties, NoUnits{}})));
}

Status Systemd::start(const std::string& unit) {
  return status_of(bus_->call(about("StartUnit", unit, {kReplace})));
}

Status Systemd::set_properties(const std::string& unit,
                               const std::vector<core::UnitProperty>& properties) {
  return status_of(bus_->call(about("SetUnitProperties", unit, {/*runtime*/ true, properties})));
}

UnitAnswers Systemd::set_and_find(const std::vector<core::SetUnit>& changes,
                                  const std::vector<core::SetUnit>& places) {
  std::vector<Bus::Request> requests;
  requests.reserve(changes.size() + places.size());
  for (const core::SetUnit& change : changes) {
    requests.push_back(about("SetUnitProperties", std::string{core::unit_of(change.path)},
                             {/*runtime*/ true, change.properties}));
  }
  for (const core::SetUnit& place : places) {
    requests.push_back({.what = cat("GetUnitByControlGroup ", printable(place.path)),
                        .message = manager_call("GetUnitByControlGroup", {place.path}),
                        .unloaded = Bus::Unloaded::kIsFine});
  }
  UnitAnswers answers;
  if (requests.empty()) return answers;
  const std::vector<Result<Message>> replies = bus_->call(std::move(requests));
  for (std::size_t i = 0; i < changes.size(); ++i)
    answers.set.push_back(status_of(replies[i]));
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Result<Message>& reply = replies[changes.size() + i];
    if (!reply) {
      answers.held.emplace_back(fail(reply.error()));
    } else {
      answers.held.emplace_back(*reply && names_unit(reply->get(), core::unit_of(places[i].path)));
    }
  }
  return answers;
}

Status Systemd::stop(const std::string& unit) {
  return status_of(bus_->call(about("StopUnit", unit, {kReplace}, Bus::Unloaded::kIsFine)));
}

Status Systemd::reset_failed(const std::string& unit) {
  return status_of(bus_->call(about("ResetFailedUnit", unit, {}, Bus::Unloaded::kIsFine)));
}

Result<std::vector<ListedUnit>> Systemd::list(const std::string& pattern) {
  using Texts = std::vector<std::string>;
  const std::string what = cat("ListUnitsByPatterns ", printable(pattern));
  PODQOS_ASSIGN(
      const auto reply,
      bus_->call({.what = what,
                  // Those in any state.
                  .message = manager_call("ListUnitsByPatterns", {Texts{}, Texts{pattern}})}));
  auto units = parse_units(reply.get());
  if (!units) return fail(std::move(units).error().with_context(what));
  return units;
}

int Systemd::round_trips() const {
  return bus_->round_trips();
}

}  // namespace podqos::cgroup
