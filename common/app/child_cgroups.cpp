#include "common/app/child_cgroups.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/app/monitor.h"
#include "common/base/text.h"
#include "common/core/pod_plan.h"
#include "common/core/value_table.h"

namespace podqos::app {

namespace {

/// Plans to lift the quota of a cgroup before its removal: cgroup v1 counts it against the parent
/// until the last process that was in it has been reaped.
void lift_quota(Transaction& transaction, const std::string& cgroup, core::Plan& plan) {
  if (transaction.machine().layout_without_hugepages().cpu != core::CgroupVersion::kV1) return;
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
Status remove_below(Transaction& transaction, const std::string& cgroup, core::Plan& plan,
                    std::size_t levels) {
  constexpr std::size_t kMostSteps = 256;
  if (levels == 0) return {};
  auto children = transaction.machine().children(cgroup);
  if (!children) return fail(std::move(children).error());
  for (const std::string& child : *children) {
    if (plan.size() >= kMostSteps) return {};
    std::string path = cat(cgroup, "/", child);
    if (auto done = remove_below(transaction, path, plan, levels - 1); !done) return done;
    plan.emplace_back(core::RemoveCgroup{std::move(path)});
  }
  return {};
}

}  // namespace

Status remove_empty_children(Transaction& transaction, const std::string& cgroup,
                             std::span<const core::ContainerRecord> except) {
  constexpr std::size_t kLevels = 8;
  auto children = transaction.machine().children(cgroup);
  if (!children) return fail(std::move(children).error());
  core::Plan plan;
  for (const std::string& child : *children) {
    std::string path = cat(cgroup, "/", child);
    if (std::ranges::find(except, path, &core::ContainerRecord::cgroup) != except.end()) continue;
    if (path == core::monitor_path(cgroup)) {
      if (auto done = free_monitor(transaction, cgroup); !done) return done;
    }
    const auto populated = transaction.machine().populated(path);
    if (populated && !*populated) {
      if (auto done = remove_below(transaction, path, plan, kLevels); !done) return done;
      lift_quota(transaction, path, plan);
    }
    plan.emplace_back(core::RemoveCgroup{std::move(path)});
  }
  return transaction.run(plan);
}

}  // namespace podqos::app
