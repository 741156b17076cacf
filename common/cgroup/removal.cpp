#include "common/cgroup/removal.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/observe_root.h"
#include "common/core/cgroups/naming.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/cgroups/value_table.h"
#include "common/core/events/choose_root.h"

namespace podqos::cgroup {

namespace {

/// Moves all processes of the monitor's cgroup to the root cgroup. Processes that the monitor
/// starts meanwhile, such as its engine's clean-up, start in the cgroup.
Status free_monitor(Machine& machine, const std::string& monitor) {
  const auto freed = machine.retry_until_done([&]() -> Result<bool> {
    PODQOS_ASSIGN(const auto pids, machine.processes(monitor));
    for (const Pid pid : pids) {
      const auto moved = machine.execute({core::MoveProcess{.path = "/", .pid = pid}});
      if (!moved && moved.error().code != ErrorCode::kNotFound) return fail(moved.error());
    }
    const auto left = machine.processes(monitor);
    return left && left->empty();
  });
  return freed ? Status{} : fail(freed.error());
}

/// Plans to lift the quota of a cgroup before its removal: cgroup v1 counts it against the parent
/// until the last process that was in it has been reaped.
void lift_quota(const core::CgroupLayout& layout, const std::string& cgroup, core::Plan& plan) {
  if (layout.cpu != core::CgroupVersion::kV1) return;
  plan.emplace_back(core::WriteFile{
      .path = cgroup,
      .controller = core::Controller::kCpu,
      .file = std::string{core::file_of(core::Value::kCpuQuota, core::CgroupVersion::kV1)},
      .value = "-1",
      .reason = "removed with its pod or container",
      .on_refusal = core::OnRefusal::kIgnore});
}

void append(Report& to, Report from) {
  std::ranges::move(from.written, std::back_inserter(to.written));
  std::ranges::move(from.ignored, std::back_inserter(to.ignored));
  to.partly = from.partly;
}

/// True if an empty cgroup is still there although it is a unit of systemd.
bool is_held_by_systemd(Machine& machine, const std::string& cgroup) {
  if (core::driver_of(cgroup) != core::Driver::kSystemd || !machine.exists(cgroup)) return false;
  const auto populated = machine.populated(cgroup);
  return populated && !*populated;
}

/// Removes the children of a pod's cgroup once.
Result<Report> remove_once(Machine& machine, const RemoveChildren& step) {
  std::vector<std::string> paths = step.only;
  if (paths.empty()) {
    PODQOS_ASSIGN(const auto children, machine.children(step.cgroup));
    for (const std::string& child : children)
      paths.push_back(cat(step.cgroup, "/", child));
  }
  core::Plan plan;
  for (std::string& path : paths) {
    if (std::ranges::find(step.except, path) != step.except.end()) continue;
    if (path == core::monitor_path(step.cgroup)) {
      PODQOS_TRY(free_monitor(machine, path));
    }
    const auto populated = machine.populated(path);
    const bool has_ended = populated && !*populated;
    if (has_ended) lift_quota(machine.layout_without_hugepages(), path, plan);
    plan.emplace_back(core::RemoveCgroup{.path = std::move(path), .nested = has_ended});
  }
  return machine.execute(plan);
}

/// Calls `attempt` until the cgroup is gone, it is in use, or the wait budget is used up.
/// @param attempt  removes what it can; returns false if another attempt would remove no more
Result<Removal> remove_beside_systemd(Machine& machine, const std::string& cgroup,
                                      const std::function<Result<bool>(Report&)>& attempt) {
  Removal removal;
  PODQOS_ASSIGN(const auto settled, machine.retry_until_done([&]() -> Result<bool> {
    PODQOS_ASSIGN(const auto again, attempt(removal.report));
    return !again || !is_held_by_systemd(machine, cgroup);
  }));
  if (!settled) {
    removal.removed = Removed::kHeldBySystemd;
  } else if (machine.exists(cgroup)) {
    removal.removed = removal.report.partly ? Removed::kPartly : Removed::kInUse;
  }
  return removal;
}

/// Executes a plan, and adds to the report.
Status run(Machine& machine, const core::Plan& plan, Report& report) {
  PODQOS_ASSIGN(auto done, machine.execute(plan));
  append(report, std::move(done));
  return {};
}

/// Removes a cgroup that has no children in any hierarchy: the mark of podqos is in one alone, and
/// another program may use the cgroup in another one.
Status remove_unused(Machine& machine, const std::string& cgroup, Report& report) {
  const auto children = machine.children(cgroup);
  if (!children) return fail(children.error());
  return children->empty() ? run(machine, core::plan_removal(cgroup), report) : Status{};
}

}  // namespace

Result<Report> remove_children(Machine& machine, const RemoveChildren& step) {
  using Until = RemoveChildren::Until;
  Report all;
  PODQOS_TRY(machine.retry_until_done([&]() -> Result<bool> {
    PODQOS_ASSIGN(auto report, remove_once(machine, step));
    append(all, std::move(report));
    if (step.until == Until::kOnce || all.partly) return true;
    const auto left = machine.children(step.cgroup);
    return !left || left->empty();
  }));
  return all;
}

Result<Removal> remove_pod(Machine& machine, const std::string& cgroup) {
  if (core::driver_of(cgroup) == core::Driver::kCgroupfs) {
    PODQOS_ASSIGN(auto report, machine.execute(core::plan_removal(cgroup)));
    if (report.ignored.empty()) return Removal{.report = std::move(report)};
  }
  return remove_beside_systemd(machine, cgroup, [&](Report& report) -> Result<bool> {
    PODQOS_TRY(run(machine, core::plan_removal(cgroup), report));
    // Runtimes have removed what they have made in most of them.
    if (std::exchange(report.ignored, {}).empty()) return true;
    PODQOS_ASSIGN(auto left, remove_once(machine, {.cgroup = cgroup}));
    append(report, std::move(left));
    if (report.partly) return false;
    PODQOS_TRY(run(machine, core::plan_removal(cgroup), report));
    return true;
  });
}

Result<Removal> remove_tree(Machine& machine, const std::string& kubepods, const std::string& top) {
  auto removal = remove_beside_systemd(machine, kubepods, [&](Report& report) -> Result<bool> {
    for (const std::string& cgroup : core::tiers_and_root(kubepods)) {
      PODQOS_TRY(remove_unused(machine, cgroup, report));
    }
    // Do not wait for a cgroup of another program.
    return core::driver_of(kubepods) == core::Driver::kSystemd && !holder_of(machine, kubepods);
  });
  if (!removal || removal->removed != Removed::kGone) return removal;
  for (const std::string& path : core::with_parents(kubepods)) {
    if (path == kubepods) continue;
    if (!is_at_or_below(path, top)) break;
    PODQOS_TRY(remove_unused(machine, path, removal->report));
  }
  return removal;
}

}  // namespace podqos::cgroup
