#include "common/cgroup/removal.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "common/base/text.h"
#include "common/cgroup/retry.h"
#include "common/core/driver.h"
#include "common/core/pod_plan.h"
#include "common/core/value_table.h"

namespace podqos::cgroup {

namespace {

/// Moves all processes of the monitor's cgroup to the root cgroup. Processes that the monitor
/// starts meanwhile, such as its engine's clean-up, start in the cgroup.
Status free_monitor(Machine& machine, const std::string& monitor) {
  const auto freed = repeat(machine, [&]() -> Result<bool> {
    const auto pids = machine.processes(monitor);
    if (!pids) return fail(pids.error());
    for (const Pid pid : *pids) {
      const auto moved =
          machine.execute({core::MoveProcess{.path = "/", .pid = pid}}, UnitChanges::kDeferred);
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

/// Plans the removal of what is below a cgroup, innermost first: containers nest their own there.
/// What the bound leaves is removed by a later attempt.
Status remove_below(Machine& machine, const std::string& cgroup, core::Plan& plan,
                    std::size_t levels) {
  constexpr std::size_t kMostSteps = 256;
  if (levels == 0) return {};
  auto children = machine.children(cgroup);
  if (!children) return fail(std::move(children).error());
  for (const std::string& child : *children) {
    if (plan.size() >= kMostSteps) return {};
    std::string path = cat(cgroup, "/", child);
    if (auto done = remove_below(machine, path, plan, levels - 1); !done) return done;
    plan.emplace_back(core::RemoveCgroup{std::move(path)});
  }
  return {};
}

void append(std::vector<std::string>& to, std::vector<std::string> from) {
  std::ranges::move(from, std::back_inserter(to));
}

}  // namespace

Result<Report> remove_children(Machine& machine, const std::string& pod_cgroup,
                               std::span<const core::ContainerRecord> except) {
  constexpr std::size_t kLevels = 8;
  auto children = machine.children(pod_cgroup);
  if (!children) return fail(std::move(children).error());
  core::Plan plan;
  for (const std::string& child : *children) {
    std::string path = cat(pod_cgroup, "/", child);
    if (std::ranges::find(except, path, &core::ContainerRecord::cgroup) != except.end()) continue;
    if (path == core::monitor_path(pod_cgroup)) {
      if (auto done = free_monitor(machine, path); !done) return fail(std::move(done).error());
    }
    const auto populated = machine.populated(path);
    if (populated && !*populated) {
      if (auto done = remove_below(machine, path, plan, kLevels); !done)
        return fail(std::move(done).error());
      lift_quota(machine.layout_without_hugepages(), path, plan);
    }
    plan.emplace_back(core::RemoveCgroup{std::move(path)});
  }
  return machine.execute(plan, UnitChanges::kDeferred);
}

Result<Report> clear_children(Machine& machine, const std::string& pod_cgroup) {
  Report all;
  const auto cleared = repeat(machine, [&]() -> Result<bool> {
    auto report = remove_children(machine, pod_cgroup);
    if (!report) return fail(std::move(report).error());
    append(all.written, std::move(report->written));
    append(all.ignored, std::move(report->ignored));
    all.removed += report->removed;
    const auto left = machine.children(pod_cgroup);
    return !left || left->empty();
  });
  if (!cleared) return fail(cleared.error());
  return all;
}

bool is_held_by_systemd(Machine& machine, const std::string& cgroup) {
  if (core::driver_of(cgroup) != core::Driver::kSystemd || !machine.exists(cgroup)) return false;
  const auto populated = machine.populated(cgroup);
  return populated && !*populated;
}

}  // namespace podqos::cgroup
