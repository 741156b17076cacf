#include "common/cgroup/dry_run.h"

#include <algorithm>
#include <variant>

#include "common/base/overloaded.h"
#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/value.h"
#include "common/core/cgroups/value_table.h"

namespace podqos::cgroup {

namespace {

std::unexpected<Error> missing(std::string_view path) {
  return fail(ErrorCode::kNotFound, cat(path, ": no such cgroup"));
}

}  // namespace

void DryRun::record(const core::Step& step) {
  std::string line = core::render({step});
  line.pop_back();  // the newline
  changes_->push_back(std::move(line));
}

const DryRun::Changed& DryRun::changed(std::string_view path) const {
  static const Changed nothing;
  const auto found = cgroups_.find(path);
  return found == cgroups_.end() ? nothing : found->second;
}

Result<Report> DryRun::execute(const core::Plan& plan) {
  Report report;
  for (auto& [path, cgroup] : cgroups_)
    cgroup.has_new_value = false;
  for (const core::Step& step : plan) {
    std::visit(Overloaded{
                   [&](const core::EnsureCgroup& s) { run(s); },
                   [&](const core::WriteFile& s) { run(s, report); },
                   [&](const core::MoveProcess& s) {
                     record(s);
                     moved_.insert_or_assign(s.pid, s.path);
                   },
                   [&](const core::KillProcesses& s) { record(s); },
                   [&](const core::RemoveCgroup& s) { run(s, report); },
                   [&](const core::SetAttribute& s) { run(s); },
                   [&](const core::SetOomScore& s) { record(s); },
                   [&](const core::SetUnit&) {},  // see below
                   [&](const core::StartUnit& s) {
                     if (!exists(s.path)) record(s);
                   },
                   [&](const core::StopUnit& s) {
                     if (!exists(s.path) && stopped_.insert(s.path).second) record(s);
                   },
               },
               step);
  }
  // After all other steps, as on the real machine.
  for (const core::Step& step : plan) {
    const auto* set = std::get_if<core::SetUnit>(&step);
    if (set != nullptr && !set->properties.empty() && changed(set->path).has_new_value)
      record(step);
  }
  return report;
}

bool DryRun::enables(const std::string& path, core::Controller controller) {
  if (changed(path).enabled.contains(controller)) return true;
  const auto enabled = machine_->read(path, controller, "cgroup.subtree_control");
  return enabled && has_word(*enabled, core::row_of(controller).v2_name);
}

bool DryRun::is_made(std::string_view path) const {
  return changed(path).completed || changed(path).state == Changed::State::kMade;
}

bool DryRun::may_lack(const core::WriteFile& step) {
  if (step.on_refusal != core::OnRefusal::kIgnore) return false;
  std::string_view path = step.path;
  // The files of a new cgroup are those of the ones above, other than the root, which has few.
  while (path != "/" && is_made(path))
    path = parent_of(path);
  if (path != "/") return !machine_->read(path, step.controller, step.file);
  // Of huge pages it is assumed that the kernel has all that are known since Linux 5.7.
  const auto& sizes = layout().hugepage_labels;
  return std::ranges::find(sizes, core::hugepage_label_in(step.file)) == sizes.end();
}

void DryRun::run(const core::EnsureCgroup& step) {
  if (exists(step.path)) {
    if (changed(step.path).state == Changed::State::kThere &&
        !is_complete(step.path).value_or(true)) {
      record(step);
      for (std::string_view path = step.path; path != "/"; path = parent_of(path))
        cgroups_[std::string{path}].completed = true;
    }
    const bool enable =
        step.also &&
        layout_without_hugepages().version_of(*step.also) == core::CgroupVersion::kV2 &&
        !enables(step.path, *step.also);
    if (!enable) return;
    record(step);
    cgroups_[step.path].enabled.insert(*step.also);
    return;
  }
  record(step);
  for (std::string_view path = step.path; path != "/" && !exists(path); path = parent_of(path))
    cgroups_.insert_or_assign(std::string{path}, Changed{.state = Changed::State::kMade});
}

void DryRun::run(const core::WriteFile& step, Report& report) {
  const auto held = read(step.path, step.controller, step.file);
  if (held && holds_value(step.file, *held, step.value)) return;
  // With its controller enabled only now, the kernel shows which files it has only then.
  const bool is_unknown = changed(parent_of(step.path)).enabled.contains(step.controller);
  if (!held && !is_unknown && may_lack(step)) return;
  const auto version = layout_without_hugepages().version_of(step.controller);
  const core::ValueRow* row = version ? core::row_with(step.file, *version) : nullptr;
  if (row != nullptr && is_made(step.path) && row->on(*version).unset == step.value) return;
  record(step);
  report.written.push_back(describe_change(step, held.value_or("")));
  Changed& cgroup = cgroups_[step.path];
  cgroup.files.insert_or_assign(step.file, step.value);
  // kernel/sched/fair.c sched_group_set_idle()
  if (row != nullptr && row->value == core::Value::kCpuIdle) {
    const core::ValueFile& share = core::row_of(core::Value::kCpuShares).on(*version);
    cgroup.files.insert_or_assign(std::string{share.name}, step.value == "1" ? "0" : share.unset);
  }
  cgroup.has_new_value = true;
}

void DryRun::run(const core::RemoveCgroup& step, Report& report) {
  if (!exists(step.path)) return;
  const auto below = children(step.path);
  const auto lives = populated(step.path);
  const bool kept = below && !below->empty() && !step.nested;
  if (!below || !lives || kept || *lives) {
    report.ignored.push_back(cat(step.path, ": in use"));
    return;
  }
  core::RemoveCgroup shown = step;
  if (below->empty()) shown.nested = false;
  record(shown);
  cgroups_.insert_or_assign(step.path, Changed{.state = Changed::State::kRemoved});
}

void DryRun::run(const core::SetAttribute& step) {
  const auto held = attribute(step.path, step.name.c_str());
  if (!held || *held == step.value) return;
  record(step);
  cgroups_[step.path].attributes.insert_or_assign(step.name, step.value);
}

bool DryRun::exists(std::string_view path) {
  switch (changed(path).state) {
    case Changed::State::kThere: return machine_->exists(path);
    case Changed::State::kMade: return true;
    case Changed::State::kRemoved: return false;
  }
  return false;
}

Result<std::string> DryRun::read_new(core::Controller controller, const std::string& file) {
  const auto version = layout_without_hugepages().version_of(controller);
  const core::ValueRow* row = version ? core::row_with(file, *version) : nullptr;
  if (row == nullptr || row->on(*version).on_refusal == core::OnRefusal::kIgnore)
    return missing(file);
  return std::string{row->on(*version).unset};
}

Result<std::string> DryRun::read(std::string_view path, core::Controller controller,
                                 const std::string& file) {
  if (!exists(path)) return missing(path);
  const auto& files = changed(path).files;
  const auto written = files.find(file);
  if (written != files.end()) return written->second;
  if (changed(path).state == Changed::State::kMade) return read_new(controller, file);
  auto held = machine_->read(path, controller, file);
  return held || !changed(path).completed ? held : read_new(controller, file);
}

Result<std::vector<std::string>> DryRun::children(std::string_view path) {
  PODQOS_ASSIGN(const auto held, machine_->children(path));
  std::set<std::string> names{held.begin(), held.end()};
  for (const auto& [each, cgroup] : cgroups_) {
    if (parent_of(each) != path) continue;
    if (cgroup.state == Changed::State::kMade) names.emplace(leaf_of(each));
    if (cgroup.state == Changed::State::kRemoved) names.erase(std::string{leaf_of(each)});
  }
  return std::vector<std::string>{names.begin(), names.end()};
}

Result<bool> DryRun::populated(std::string_view path) {
  if (moved_.empty()) return machine_->populated(path);
  PODQOS_ASSIGN(const auto pids, processes(path));
  return !pids.empty();
}

Result<std::vector<Pid>> DryRun::processes(std::string_view path) {
  PODQOS_ASSIGN(auto pids, machine_->processes(path));
  std::erase_if(pids, [&](Pid pid) { return moved_.contains(pid); });
  for (const auto& [pid, cgroup] : moved_) {
    if (is_at_or_below(cgroup, path)) pids.push_back(pid);
  }
  std::ranges::sort(pids);
  return pids;
}

Result<std::optional<std::string>> DryRun::attribute(std::string_view path, const char* name) {
  if (!exists(path)) return missing(path);
  const Changed& cgroup = changed(path);
  const auto set = cgroup.attributes.find(name);
  if (set != cgroup.attributes.end()) return std::optional{set->second};
  if (cgroup.state == Changed::State::kMade) return std::nullopt;
  return machine_->attribute(path, name);
}

core::MemoryFiles DryRun::memory_files(std::string_view path) {
  while (path != "/" && is_made(path))
    path = parent_of(path);
  if (path != "/") return machine_->memory_files(path);
  // The root cgroup has none of these files; any other has those of a new one.
  core::MemoryFiles files;
  for (const std::string& child : machine_->children(path).value_or(std::vector<std::string>{})) {
    const core::MemoryFiles held = machine_->memory_files(cat("/", child));
    files.swap_max |= held.swap_max;
    files.oom_group |= held.oom_group;
  }
  return files;
}

}  // namespace podqos::cgroup
