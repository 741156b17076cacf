#include "common/cgroup/dry_run.h"

#include <algorithm>
#include <variant>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/value.h"

namespace podqos::cgroup {

namespace {

std::unexpected<Error> missing(std::string_view path) {
  return fail(ErrorCode::kNotFound, cat(path, ": no such cgroup"));
}

/// "/a/b/c", whose parent is `parent`.
bool is_child(std::string_view path, std::string_view parent) {
  return path != "/" && parent_of(path) == parent;
}

}  // namespace

void DryRun::record(const core::Step& step) {
  std::string line = core::render({step});
  line.pop_back();  // the newline
  changes_->push_back(std::move(line));
}

Result<Report> DryRun::execute(const core::Plan& plan, UnitChanges /*when*/) {
  Report report;
  changed_.clear();
  for (const core::Step& step : plan)
    std::visit([&](const auto& concrete) { run(concrete, report); }, step);
  // After all other steps, as on the real machine.
  for (const core::Step& step : plan) {
    const auto* set = std::get_if<core::SetUnit>(&step);
    if (set != nullptr && !set->properties.empty() && changed_.contains(set->path)) record(step);
  }
  return report;
}

bool DryRun::enables(const std::string& path, core::Controller controller) {
  if (enabled_.contains({path, controller})) return true;
  const std::string_view name = core::row_of(controller).v2_name;
  const auto enabled = machine_->read(path, controller, "cgroup.subtree_control");
  if (!enabled) return false;
  std::string_view rest = *enabled;
  while (!rest.empty()) {
    if (read_until(rest, ' ') == name) return true;
  }
  return false;
}

bool DryRun::may_lack(const core::WriteFile& step) {
  if (step.on_refusal != core::OnRefusal::kIgnore) return false;
  std::string_view path = step.path;
  // The files of a new cgroup are those of the ones above, other than the root, which has few.
  while (is_made(path))
    path = parent_of(path);
  return path == "/" || !machine_->read(path, step.controller, step.file);
}

void DryRun::run(const core::EnsureCgroup& step, Report& report) {
  if (exists(step.path)) {
    const bool enable =
        step.also &&
        layout_without_hugepages().version_of(*step.also) == core::CgroupVersion::kV2 &&
        !enables(step.path, *step.also);
    if (!enable) return;
    record(step);
    enabled_.emplace(step.path, *step.also);
    return;
  }
  record(step);
  ++report.made;
  for (std::string_view path = step.path; path != "/" && !exists(path); path = parent_of(path)) {
    removed_.erase(std::string{path});
    made_.emplace(path);
  }
}

void DryRun::run(const core::WriteFile& step, Report& /*report*/) {
  const auto held = read(step.path, step.controller, step.file);
  if (held && holds_value(step.file, *held, step.value)) return;
  // With its controller enabled only now, the kernel shows which files it has only then.
  const bool is_unknown = enabled_.contains({std::string{parent_of(step.path)}, step.controller});
  if (!held && !is_unknown && may_lack(step)) return;
  record(step);
  files_.insert_or_assign(Key{step.path, step.file}, step.value);
  changed_.insert(step.path);
}

void DryRun::run(const core::MoveProcess& step, Report& /*report*/) {
  record(step);
  moved_.insert_or_assign(step.pid, step.path);
}

void DryRun::run(const core::RemoveCgroup& step, Report& report) {
  if (!exists(step.path)) return;
  const auto below = children(step.path);
  const auto lives = populated(step.path);
  const bool kept = below && !below->empty() && step.nested == core::Nested::kKept;
  if (!below || !lives || kept || *lives) {
    report.ignored.push_back(cat(step.path, ": in use"));
    return;
  }
  core::RemoveCgroup shown = step;
  if (below->empty()) shown.nested = core::Nested::kKept;
  record(shown);
  ++report.removed;
  made_.erase(step.path);
  removed_.insert(step.path);
  const auto is_of_cgroup = [&](const auto& entry) { return entry.first.first == step.path; };
  std::erase_if(files_, is_of_cgroup);
  std::erase_if(attributes_, is_of_cgroup);
}

void DryRun::run(const core::SetAttribute& step, Report& /*report*/) {
  const auto held = attribute(step.path, step.name.c_str());
  if (!held || *held == step.value) return;
  record(step);
  attributes_.insert_or_assign(Key{step.path, step.name}, step.value);
}

void DryRun::run(const core::SetOomScore& step, Report& /*report*/) {
  record(step);
}

void DryRun::run(const core::StartUnit& step, Report& /*report*/) {
  if (!exists(step.path)) record(step);
}

void DryRun::run(const core::StopUnit& step, Report& /*report*/) {
  if (!exists(step.path)) record(step);
}

bool DryRun::exists(std::string_view path) {
  if (is_made(path)) return true;
  return !removed_.contains(path) && machine_->exists(path);
}

Result<std::string> DryRun::read(std::string_view path, core::Controller controller,
                                 const std::string& file) {
  if (!exists(path)) return missing(path);
  const auto written = files_.find(Key{path, file});
  if (written != files_.end()) return written->second;
  return machine_->read(path, controller, file);
}

Result<std::vector<std::string>> DryRun::children(std::string_view path) {
  auto names = machine_->children(path);
  if (!names) return names;
  const std::string prefix = path == "/" ? "/" : cat(path, "/");
  std::erase_if(*names, [&](const std::string& name) { return !exists(cat(prefix, name)); });
  for (const std::string& made : made_) {
    if (is_child(made, path)) names->push_back(made.substr(prefix.size()));
  }
  std::ranges::sort(*names);
  const auto repeated = std::ranges::unique(*names);
  names->erase(repeated.begin(), repeated.end());
  return names;
}

Result<bool> DryRun::populated(std::string_view path) {
  if (moved_.empty()) return machine_->populated(path);
  PODQOS_ASSIGN(const auto pids, processes(path));
  return !pids.empty();
}

Result<std::vector<Pid>> DryRun::processes(std::string_view path) {
  auto pids = machine_->processes(path);
  if (!pids) return pids;
  std::erase_if(*pids, [&](Pid pid) { return moved_.contains(pid); });
  for (const auto& [pid, cgroup] : moved_) {
    if (is_at_or_below(cgroup, path)) pids->push_back(pid);
  }
  std::ranges::sort(*pids);
  return pids;
}

Result<std::optional<std::string>> DryRun::attribute(std::string_view path, const char* name) {
  if (!exists(path)) return missing(path);
  const auto set = attributes_.find(Key{path, name});
  if (set != attributes_.end()) return std::optional{set->second};
  if (is_made(path)) return std::nullopt;
  return machine_->attribute(path, name);
}

Result<std::string> DryRun::cgroup_of(Pid pid) {
  const auto moved = moved_.find(pid);
  if (moved != moved_.end()) return moved->second;
  return machine_->cgroup_of(pid);
}

}  // namespace podqos::cgroup
