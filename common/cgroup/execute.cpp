
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/overloaded.h"
#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/cgroup/value.h"
#include "common/core/cgroups/layout.h"
#include "common/core/cgroups/naming.h"
#include "common/sys/process.h"

namespace podqos::cgroup {

namespace {

/// A cgroup that the plan moves a process into must be a leaf on v2.
CgroupUse use_of(const std::string& path, const core::Plan& plan) {
  const bool is_leaf = std::ranges::any_of(plan, [&path](const core::Step& step) {
    const auto* move = std::get_if<core::MoveProcess>(&step);
    return move != nullptr && move->path == path;
  });
  return is_leaf ? CgroupUse::kLeaf : CgroupUse::kInner;
}

Status set_oom_score(const core::SetOomScore& step, Report& report) {
  Status set = sys::set_oom_score_adj(step.pid, step.start_time, step.score);
  if (set) {
    report.written.push_back(cat("/proc/", step.pid.value(), "/oom_score_adj = ", step.score));
  }
  return set;
}

/// What one plan may spend on cgroups that are nested in those that it removes: containers make as
/// many as they like, and the lock is held. A look at a cgroup takes one step, its removal eight,
/// for that is what the kernel needs for it: 512 removals, or a look 2,000 levels down.
constexpr int kNestedSteps = 4096;
constexpr int kRemovalSteps = 8;

/// Bounds the descriptors: below it the walk goes on, and leaves what is above to the next call.
constexpr std::size_t kMaxOpen = 128;

/// A cgroup on the way down, and those of its children that are still to be removed.
struct Level {
  sys::Directory cgroup;
  std::vector<std::string> children;
  bool was_in_last = false;  ///< what is nested in the last child was gone through
};

/// Removes what is nested in cgroup `name`, from the bottom, as far as the kernel allows it and
/// there are steps left. Remembers nothing: what is removed is not in the next call's way.
/// @param steps  left; reduced by what was spent
/// @return whether any was removed
bool remove_nested(const sys::Directory& parent, std::string_view name, int& steps) {
  bool removed = false;
  std::vector<Level> way;
  const auto enter = [&](const sys::Directory& above, std::string_view child) {
    auto cgroup = above.open_directory(child);
    if (!cgroup) return;
    auto children = cgroup->subdirectories(static_cast<std::size_t>(steps));
    if (!children) return;
    if (way.size() == kMaxOpen) way.erase(way.begin());
    way.push_back({.cgroup = std::move(*cgroup), .children = std::move(*children)});
  };
  if (steps > 0) enter(parent, name);
  while (!way.empty() && steps > 0) {
    Level& here = way.back();
    if (here.children.empty()) {
      way.pop_back();
      continue;
    }
    const std::string child = here.children.back();
    const auto gone = here.cgroup.remove_directory(child);
    const bool is_removed = gone && *gone;
    removed = removed || is_removed;
    steps -= is_removed ? kRemovalSteps : 1;
    // Refused for what is nested in it, or else for a process or a mount.
    const bool goes_in = !gone && !here.was_in_last;
    here.was_in_last = goes_in;
    if (!goes_in) {
      here.children.pop_back();
      continue;
    }
    enter(here.cgroup, child);
  }
  return removed;
}

}  // namespace

Result<Report> Cgroupfs::execute(const core::Plan& plan) {
  Report report;
  nested_steps_ = kNestedSteps;
  const auto earlier = std::ssize(deferred_changes_);
  const Status done =
      carry_out(plan, report, [&](const core::Step& step) { return run(step, plan, report); });
  // Values written before a failure stay, so that systemd must know them too.
  note_units(plan, report, earlier);
  const Status applied = defers_unit_changes() ? Status{} : apply_unit_changes(report);
  if (!done) return fail(done.error());
  if (!applied) return fail(applied.error());
  return report;
}

void Cgroupfs::note_units(const core::Plan& plan, const Report& report, std::ptrdiff_t at) {
  for (const core::Step& step : plan) {
    const auto* set_unit = std::get_if<core::SetUnit>(&step);
    if (set_unit == nullptr || set_unit->properties.empty()) continue;
    if (set_unit->always || has_changed(report, set_unit->path))
      deferred_changes_.insert(deferred_changes_.begin() + at++, *set_unit);
  }
}

Status Cgroupfs::apply_unit_changes(Report& report) {
  Status first;
  for (const core::SetUnit& step : std::exchange(deferred_changes_, {})) {
    Status done = set_unit(step, report);
    if (done) continue;
    if (is_allowed(step, done.error())) {
      report.ignored.push_back(std::move(done).error().message);
    } else if (first) {
      first = std::move(done);
    }
  }
  return first;
}

Status Cgroupfs::run(const core::Step& step, const core::Plan& plan, Report& report) {
  return std::visit(
      Overloaded{
          [&](const core::EnsureCgroup& s) { return ensure(s, use_of(s.path, plan), report); },
          [&](const core::WriteFile& s) { return write(s, report); },
          [&](const core::MoveProcess& s) { return move(s); },
          [&](const core::KillProcesses& s) { return kill(s); },
          [&](const core::RemoveCgroup& s) { return remove(s, report); },
          [&](const core::SetAttribute& s) { return set_attribute(s); },
          [&](const core::SetOomScore& s) { return set_oom_score(s, report); },
          [&](const core::StartUnit& s) { return start(s, report); },
          [&](const core::SetUnit&) -> Status { return {}; },  // see note_units()
          [&](const core::StopUnit& s) { return stop(s); },
      },
      step);
}

Status Cgroupfs::ensure(const core::EnsureCgroup& step, CgroupUse use, Report& report) {
  for (OpenHierarchy& hierarchy : *hierarchies_) {
    PODQOS_ASSIGN(const bool writable, hierarchy.is_writable());
    if (!writable) continue;
    PODQOS_TRY(ensure_cgroup(hierarchy, step.path, use, step.also));
    drop_refused(hierarchy, report);
  }
  return {};
}

Status Cgroupfs::write(const core::WriteFile& step, Report& report) {
  OpenHierarchy* hierarchy = hierarchy_of(step.controller);
  if (hierarchy == nullptr) {
    return fail(ErrorCode::kUnsupported, cat(step.path, ": write \"", step.value, "\" to ",
                                             step.file, ": this machine has no ",
                                             core::row_of(step.controller).v2_name, " controller"));
  }
  const auto changed = hierarchy->change(step);
  if (changed) {
    if (*changed) report.written.push_back(describe_change(step, **changed));
    return {};
  }
  if (changed.error() != ENOENT) return fail(refusal(step, changed.error()));
  PODQOS_ASSIGN(const bool exists, hierarchy->exists(step.path));
  if (!exists) {
    return fail(ErrorCode::kNotFound,
                cat(step.path, ": write \"", step.value, "\" to ", step.file, ": no such cgroup"));
  }
  if (!is_refused(*hierarchy, step, report)) return fail(refusal(step, ENOENT));
  report.ignored.push_back(refusal(step, ENOENT).message);
  return {};
}

Status Cgroupfs::set_attribute(const core::SetAttribute& step) {
  const char* name = step.name.c_str();
  Status done = primary().set_attribute(step.path, name, step.value);
  // The refusal of the first value is what the report tells.
  if (!done && step.otherwise)
    static_cast<void>(primary().set_attribute(step.path, name, *step.otherwise).has_value());
  return done;
}

Status Cgroupfs::move(const core::MoveProcess& step) {
  const std::string pid = std::to_string(step.pid.value());
  for (OpenHierarchy& hierarchy : *hierarchies_) {
    if (!has_used_controller(hierarchy.description())) continue;
    PODQOS_ASSIGN(const bool writable, hierarchy.is_writable());
    if (!writable) continue;
    constexpr const char* kFile = "cgroup.procs";
    const OrErrno<void> moved = hierarchy.write(step.path, kFile, pid);
    if (moved) continue;
    if (moved.error() == ESRCH)
      return fail(ErrorCode::kNotFound, cat(step.path, ": process ", pid, " is gone"));
    const std::string file = cat(hierarchy.description().mount_point, step.path, "/", kFile);
    return fail(refusal({.path = step.path, .file = file, .value = pid}, moved.error()));
  }
  return {};
}

Status Cgroupfs::remove_from(OpenHierarchy& hierarchy, const core::RemoveCgroup& step,
                             Report& report) {
  PODQOS_ASSIGN(const bool writable, hierarchy.is_writable());
  if (!writable) return {};
  Status removed = hierarchy.remove(step.path);
  if (!removed && step.nested) {
    PODQOS_ASSIGN(const auto parent, hierarchy.directory(parent_of(step.path)));
    const bool has_steps = nested_steps_ > 0;
    const bool nested = remove_nested(parent, leaf_of(step.path), nested_steps_);
    removed = hierarchy.remove(step.path);
    report.partly = report.partly || (!removed && (nested || !has_steps));
  }
  if (!removed) return fail(std::move(removed).error().with_context(step.path));
  return {};
}

Status Cgroupfs::remove(const core::RemoveCgroup& step, Report& report) {
  if (step.path == "/") {
    return fail(ErrorCode::kInvalidArgument, "the root cgroup cannot be removed");
  }
  if (core::driver_of(step.path) == core::Driver::kSystemd) {
    const auto weighted = attribute(step.path, core::kIoWeightAttribute);
    if (weighted && *weighted) weighted_units_.emplace(core::unit_of(step.path));
  }
  // The memory hierarchy goes first: if the cgroup is still in use, it stays in all hierarchies,
  // with all its limits.
  PODQOS_TRY(remove_from(primary(), step, report));
  Status first;
  for (OpenHierarchy& hierarchy : *hierarchies_) {
    if (&hierarchy == &primary()) continue;
    Status gone = remove_from(hierarchy, step, report);
    if (!gone && first) first = std::move(gone);
  }
  return first;
}

}  // namespace podqos::cgroup
