#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/core/cgroups/naming.h"
#include "common/core/cgroups/value_table.h"

namespace podqos::cgroup {

namespace {

/// Drop-ins that systemd writes for SetUnitProperties with runtime=true; systemd.unit(5), "Unit
/// File Load Path". Stopping a unit does not remove them, so that the next unit of the same name
/// would inherit them.
constexpr const char* kControlDirectory = "/run/systemd/system.control";

/// The administrator's runtime unit files; systemd.unit(5).
constexpr const char* kUnitDirectory = "/run/systemd/system";

/// Pause before a retry: a unit that is loaded for StartUnit and missing for SetUnitProperties is
/// being unloaded.
constexpr std::chrono::milliseconds kStartPause{10};

constexpr std::string_view kIoWeightDropIn = "50-IOWeight.conf";
/// Who has set IOWeight=: podqos only for a cgroup with kIoWeightAttribute.
enum class IoWeight : std::uint8_t { kPodqos, kAdministrator };

/// Removes the drop-ins of a stopped unit.
Status remove_drop_ins(const std::string& unit, IoWeight io_weight) {
  const std::string name = cat(unit, ".d");
  const auto control = sys::Directory::open(kControlDirectory);
  const auto drop_ins = control ? control->open_directory(name) : fail(control.error());
  if (!drop_ins) {
    if (drop_ins.error().code == ErrorCode::kNotFound) return {};
    return fail(drop_ins.error());
  }
  PODQOS_ASSIGN(const auto files, drop_ins->entries());
  for (const std::string& file : files) {
    // Other drop-ins are the administrator's and are kept.
    if (!core::is_drop_in(file)) continue;
    if (file == kIoWeightDropIn && io_weight == IoWeight::kAdministrator) continue;
    PODQOS_TRY(drop_ins->remove_file(file));
  }
  auto removed = control->remove_directory(name);
  if (!removed && removed.error().code != ErrorCode::kBusy) return fail(std::move(removed).error());
  return {};
}

/// Makes systemd check its unit files again by changing the mtime of a unit directory. After a
/// daemon-reload systemd remembers the file of each transient unit, also after it has removed the
/// unit and the file. A runtime that then starts a scope in a slice of this name gets NoSuchUnit.
void touch_unit_directory() {
  const auto files = sys::Directory::open(kUnitDirectory);
  // Best effort: only such a start would fail.
  if (files) static_cast<void>(::futimens(files->fd(), nullptr));
}

}  // namespace

bool Cgroupfs::wait(std::chrono::milliseconds time) {
  if (time > wait_left_) return false;
  wait_left_ -= time;
  std::this_thread::sleep_for(time);
  return true;
}

bool Cgroupfs::is_active(const std::string& unit) {
  if (active_units_.contains(unit)) return true;
  // Where systemd does not answer, the call that follows tells.
  auto properties = systemd_.properties(unit);
  const bool is_active = properties && *properties;
  if (is_active) active_units_.emplace(unit, **std::move(properties));
  return is_active;
}

Status Cgroupfs::tell(const std::string& unit, const std::vector<core::UnitProperty>& properties) {
  const auto known = active_units_.find(unit);
  if (known == active_units_.end()) return systemd_.set_properties(unit, properties);
  const auto has = [&](const core::UnitProperty& property) {
    const auto found = known->second.find(property.name);
    return found != known->second.end() && found->second == property.value;
  };
  if (std::ranges::all_of(properties, has)) return {};
  PODQOS_TRY(systemd_.set_properties(unit, properties));
  for (const core::UnitProperty& property : properties)
    known->second.insert_or_assign(property.name, property.value);
  return {};
}

Status Cgroupfs::start(const core::StartUnit& step, Report& report) {
  const std::string unit{core::unit_of(step.path)};
  // One question in place of a start that is refused, and of files that systemd writes again.
  if (core::scope_of(step.path).empty() && exists(step.path) && is_active(unit)) {
    // Told now, systemd would write the files, of which then nothing could be reported.
    deferred_changes_.push_back({.path = step.path, .properties = step.properties});
    return {};
  }
  std::vector<core::UnitProperty> all = step.once;
  all.insert(all.end(), step.properties.begin(), step.properties.end());
  while (true) {
    auto done = systemd_.start_transient(unit, all);
    if (done) {
      active_units_.try_emplace(unit);
      report.written.push_back(cat(step.path, " is unit ", unit));
      return {};
    }
    if (done.error().code != ErrorCode::kAlreadyExists) return done;
    if (!core::scope_of(step.path).empty()) return check_scope(step.path, unit);
    // The slice may have a pending stop job, which StartUnit cancels.
    done = systemd_.start(unit);
    if (done && !step.properties.empty()) done = systemd_.set_properties(unit, step.properties);
    if (done) return {};
    if (done.error().code != ErrorCode::kNotFound || !wait(kStartPause)) return done;
  }
}

Status Cgroupfs::set_unit(const core::SetUnit& step, Report& report) {
  const std::string unit{core::unit_of(step.path)};
  if (core::scope_of(step.path).empty()) {
    // What has changed a file is known to be new.
    if (step.always) static_cast<void>(is_active(unit));
    return tell(unit, step.properties);
  }
  // A scope's name does not determine its cgroup, so that the cgroup must be looked up.
  PODQOS_ASSIGN(const bool own, systemd_.holds(step.path));
  if (!own) return {};
  core::WriteFile together{.path = step.path,
                           .controller = core::Controller::kMemory,
                           .file = "memory.oom.group",
                           .value = "1",
                           .reason = "container"};
  const bool is_together = layout_.memory == core::CgroupVersion::kV2 &&
                           read(step.path, together.controller, together.file) == together.value;
  PODQOS_TRY(systemd_.set_properties(unit, step.properties));
  if (!is_together) return {};
  // After its reply to SetUnitProperties, and before it reads the next message, systemd applies its
  // OOMPolicy= to memory.oom.group. The reply to another call, whatever it says, shows that this is
  // done.
  const auto barrier = systemd_.holds(step.path);
  auto kept = write(together, report);
  PODQOS_TRY(barrier);
  // The container may have ended meanwhile.
  return !kept && kept.error().code == ErrorCode::kNotFound ? Status{} : kept;
}

Status Cgroupfs::check_scope(const std::string& path, const std::string& unit) {
  PODQOS_ASSIGN(const bool own, systemd_.holds(path));
  if (own) return {};
  return fail(ErrorCode::kConflict,
              cat(path, ": unit ", unit, " already exists for another cgroup and is not changed"));
}

Status Cgroupfs::stop(const core::StopUnit& step) {
  // Not empty. systemd may have re-created the directory, empty, since it was removed.
  PODQOS_ASSIGN(const auto below, children(step.path));
  PODQOS_ASSIGN(const auto lives, populated(step.path));
  if (!below.empty() || lives) return {};
  const std::string unit{core::unit_of(step.path)};
  // systemd unloads a scope after its last process has ended; another unit may have the name by
  // now.
  if (!core::scope_of(step.path).empty()) return {};
  active_units_.erase(unit);
  // A deferred SetUnitProperties would load the unit again.
  std::erase_if(deferred_changes_,
                [&](const core::SetUnit& late) { return late.path == step.path; });
  PODQOS_TRY(systemd_.stop(unit));
  PODQOS_TRY(systemd_.reset_failed(unit));
  touch_unit_directory();
  return remove_drop_ins(
      unit, weighted_units_.contains(unit) ? IoWeight::kPodqos : IoWeight::kAdministrator);
}

}  // namespace podqos::cgroup
