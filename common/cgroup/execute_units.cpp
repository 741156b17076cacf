#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/core/driver.h"

namespace podqos::cgroup {

namespace {

/// Where systemd keeps what set_properties() told it, until the next boot; systemd.unit(5). A unit
/// that is stopped leaves it there, for the next one of its name.
constexpr const char* kKept = "/run/systemd/system.control";

/// What systemd calls the properties of unit_properties() there.
constexpr std::array<std::string_view, 11> kKeptFiles = {
    "50-CPUWeight.conf", "50-CPUShares.conf",     "50-CPUQuota.conf",   "50-CPUQuotaPeriodSec.conf",
    "50-MemoryMax.conf", "50-MemoryLimit.conf",   "50-MemoryHigh.conf", "50-MemoryLow.conf",
    "50-MemoryMin.conf", "50-MemorySwapMax.conf", "50-TasksMax.conf"};

/// Unit files of the administrator, until the next boot.
constexpr const char* kUnitFiles = "/run/systemd/system";

/// A unit that is loaded when it is started and gone when it is told something is one that systemd
/// is just forgetting.
constexpr std::chrono::milliseconds kStartPause{10};

/// Removes the drop-ins of a unit that is no more.
Status forget_kept(const std::string& unit) {
  auto control = sys::Directory::open(kKept);
  if (!control) {
    if (control.error().code == ErrorCode::kNotFound) return {};
    return fail(std::move(control).error());
  }
  const std::string name = cat(unit, ".d");
  auto drop_ins = control->open_directory(name);
  if (!drop_ins) {
    if (drop_ins.error().code == ErrorCode::kNotFound) return {};
    return fail(std::move(drop_ins).error());
  }
  auto files = drop_ins->entries();
  if (!files) return fail(std::move(files).error());
  for (const std::string& file : *files) {
    // An administrator's own stay.
    if (std::ranges::find(kKeptFiles, file) == kKeptFiles.end()) continue;
    if (auto removed = drop_ins->remove_file(file); !removed)
      return fail(std::move(removed).error());
  }
  auto removed = control->remove_directory(name);
  if (!removed && removed.error().code != ErrorCode::kBusy) return fail(std::move(removed).error());
  return {};
}

/// A daemon-reload makes systemd remember the file of each transient unit, and it still believes in
/// the file after it has removed it with the unit: whoever then starts a scope in a slice of this
/// name (a runtime, from a config.json that names it) is told that there is no such unit. It looks
/// again once this directory has changed.
void let_systemd_look_again() {
  const auto files = sys::Directory::open(kUnitFiles);
  // Without it only such a start is at stake.
  if (files) static_cast<void>(::futimens(files->fd(), nullptr));
}

}  // namespace

Result<std::vector<ListedUnit>> Cgroupfs::learn_units(const std::string& pattern) {
  auto units = systemd_.list(pattern);
  if (!units) return units;
  for (const ListedUnit& unit : *units) {
    if (unit.active_state == "active") active_units_.insert(unit.name);
  }
  return units;
}

Result<bool> Cgroupfs::is_own_unit(const std::string& path) {
  const std::string_view scope = core::scope_of(path);
  if (scope.empty()) return true;
  return systemd_.holds({.unit = std::string{scope}, .cgroup = path});
}

Status Cgroupfs::start(const core::StartUnit& step, Report& report) {
  const std::string unit{core::unit_of(step.path)};
  if (active_units_.contains(unit))
    return step.properties.empty() ? Status{} : systemd_.set_properties(unit, step.properties);
  std::vector<core::UnitProperty> all = step.once;
  all.insert(all.end(), step.properties.begin(), step.properties.end());
  while (true) {
    auto done = systemd_.start_transient(unit, all, step.once_if_known);
    if (done) {
      report.written.push_back(cat(step.path, " is unit ", unit));
      return {};
    }
    if (done.error().code != ErrorCode::kAlreadyExists) return done;
    if (!core::scope_of(step.path).empty()) return check_scope(step.path, unit);
    // It may be on its way out.
    done = systemd_.start(unit);
    if (done && !step.properties.empty()) done = systemd_.set_properties(unit, step.properties);
    if (done) return {};
    if (done.error().code != ErrorCode::kNotFound || !waits_.wait(kStartPause)) return done;
  }
}

Status Cgroupfs::check_scope(const std::string& path, const std::string& unit) {
  auto own = is_own_unit(path);
  if (!own) return fail(std::move(own).error());
  if (*own) return {};
  return fail(ErrorCode::kConflict,
              cat(path, ": unit ", unit, " already exists for another cgroup and is not changed"));
}

Status Cgroupfs::stop(const core::StopUnit& step) {
  // Something lives in it, or a child is left. systemd itself may have made the directory again
  // since it was removed, empty.
  const auto below = children(step.path);
  if (!below) return fail(below.error());
  const auto lives = populated(step.path);
  if (!lives) return fail(lives.error());
  if (!below->empty() || *lives) return {};
  const std::string unit{core::unit_of(step.path)};
  // systemd forgets a scope by itself when its last process has gone; another one may have the name
  // by now.
  if (!core::scope_of(step.path).empty()) return {};
  active_units_.erase(unit);
  // It would be loaded once more.
  std::erase_if(deferred_changes_,
                [&](const core::SetUnit& late) { return late.path == step.path; });
  if (auto done = systemd_.stop(unit); !done) return done;
  if (auto done = systemd_.reset_failed(unit); !done) return done;
  let_systemd_look_again();
  return forget_kept(unit);
}

}  // namespace podqos::cgroup
