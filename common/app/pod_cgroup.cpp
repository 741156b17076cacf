#include "common/app/pod_cgroup.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "common/app/cgroup_view.h"
#include "common/base/text.h"
#include "common/core/attributes.h"
#include "common/core/pod_plan.h"
#include "common/sys/process.h"

namespace podqos::app {

namespace {

/// Defaults of a new cgroup: Documentation/admin-guide/cgroup-v2.rst, cpu.weight;
/// kernel/sched/sched.h, NICE_0_LOAD for cpu.shares.
constexpr CpuShares kDefaultShares{1024};
constexpr CpuWeight kDefaultWeight{100};

/// Names in /proc/PID/stat, at most 15 bytes long (TASK_COMM_LEN).
constexpr std::array<std::string_view, 3> kMonitors = {"conmon", "conmonrs", "containerd-shim"};

/// The runtime's parent if it is a monitor; nullopt otherwise.
Result<std::optional<Pid>> monitor_of(cgroup::Machine& machine, Pid runtime) {
  const auto stat = machine.stat_of(runtime);
  if (!stat) return fail(stat.error());
  if (!*stat) return std::nullopt;
  const auto parent = machine.stat_of((*stat)->parent);
  if (!parent) return fail(parent.error());
  const bool monitor = *parent && std::ranges::find(kMonitors, (*parent)->name) != kMonitors.end();
  return monitor ? std::optional{(*stat)->parent} : std::nullopt;
}

}  // namespace

bool is_untouched(cgroup::Machine& machine, const std::string& cgroup) {
  const CgroupView view{machine, cgroup};
  return !view.cpu_quota() && !view.memory_limit() &&
         view.cpu_shares().value_or(kDefaultShares) == kDefaultShares &&
         view.cpu_weight().value_or(kDefaultWeight) == kDefaultWeight;
}

core::PodCgroupSnapshot observe_pod_cgroup(cgroup::Machine& machine, const std::string& cgroup) {
  core::PodCgroupSnapshot snapshot;
  const auto copy = machine.attribute(cgroup, core::kRecordAttribute);
  snapshot.has_copy = copy && copy->has_value();
  if (snapshot.has_copy) return snapshot;
  snapshot.exists = machine.exists(cgroup);
  snapshot.untouched = snapshot.exists && is_untouched(machine, cgroup);
  return snapshot;
}

Status charge_monitor(Transaction& transaction, const core::PodRecord& record, Pid runtime) {
  if (!transaction.settings().charge_monitor || record.adopted) return {};
  auto monitor = monitor_of(transaction.machine(), runtime);
  if (!monitor) return fail(std::move(monitor).error());
  if (!*monitor) return {};
  auto placed = transaction.machine().cgroup_of(**monitor);
  if (!placed) return fail(std::move(placed).error());
  // Placed there by the engine, or for an earlier container of the pod.
  if (placed->starts_with(cat(record.cgroup, "/"))) return {};
  auto done = transaction.run(core::plan_monitor(record.cgroup, **monitor));
  // It has ended in the meantime.
  if (!done && done.error().code == ErrorCode::kNotFound) return {};
  if (!done) return done;
  transaction.log().info(cat("pod ", record.pod.uid, ": process ", (*monitor)->value(), " from ",
                             *placed, " is charged to the pod as its monitor"));
  return {};
}

Result<bool> holds_container(Transaction& transaction, const std::string& pod_cgroup) {
  auto populated = transaction.machine().populated(pod_cgroup);
  if (!populated || !*populated) return populated;
  const std::string monitor = core::monitor_path(pod_cgroup);
  if (!transaction.machine().exists(monitor)) return true;
  const auto all = transaction.machine().processes(pod_cgroup);
  if (!all) return fail(all.error());
  const auto own = transaction.machine().processes(monitor);
  if (!own) return fail(own.error());
  return all->size() > own->size();
}

}  // namespace podqos::app
