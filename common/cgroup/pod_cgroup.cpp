#include "common/cgroup/pod_cgroup.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/core/cgroups/layout.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/cgroups/value_table.h"
#include "common/sys/process.h"

namespace podqos::cgroup {

namespace {

/// Defaults of a new cgroup: Documentation/admin-guide/cgroup-v2.rst, cpu.weight;
/// kernel/sched/sched.h, NICE_0_LOAD for cpu.shares.
constexpr CpuShares kDefaultShares{1024};
constexpr CpuWeight kDefaultWeight{100};

/// Names in /proc/PID/stat, at most 15 bytes long (TASK_COMM_LEN).
constexpr std::array<std::string_view, 3> kMonitors = {"conmon", "conmonrs", "containerd-shim"};

}  // namespace

bool is_untouched(Machine& machine, const std::string& cgroup) {
  const CgroupView view{machine, cgroup};
  return !view.cpu_quota() && !view.memory_limit() &&
         view.cpu_shares().value_or(kDefaultShares) == kDefaultShares &&
         view.cpu_weight().value_or(kDefaultWeight) == kDefaultWeight;
}

bool is_bare(Machine& machine, const std::string& cgroup) {
  const auto children = machine.children(cgroup);
  return children && children->empty() && is_untouched(machine, cgroup);
}

Result<core::CgroupOrigin> origin_of_pod(Machine& machine, const std::string& cgroup) {
  using core::CgroupOrigin;
  const auto copy = machine.attribute(cgroup, core::kRecordAttribute);
  if (!copy && copy.error().code == ErrorCode::kNotFound) return CgroupOrigin::kNone;
  if (!copy) return fail(copy.error());
  if (*copy) return CgroupOrigin::kPodqos;
  return is_untouched(machine, cgroup) ? CgroupOrigin::kEngine : CgroupOrigin::kOther;
}

Result<bool> holds_container(Machine& machine, const std::string& pod_cgroup) {
  auto populated = machine.populated(pod_cgroup);
  if (!populated || !*populated) return populated;
  const std::string monitor = core::monitor_path(pod_cgroup);
  if (!machine.exists(monitor)) return true;
  const auto all = machine.processes(pod_cgroup);
  // Too many cgroups to look into: it counts as living until a later look.
  if (!all && all.error().code == ErrorCode::kTooLarge) return true;
  if (!all) return fail(all.error());
  PODQOS_ASSIGN(const auto own, machine.processes(monitor));
  return all->size() > own.size();
}

std::optional<Bytes> usage_above(Machine& machine, const std::string& cgroup, Bytes limit) {
  const CgroupView view{machine, cgroup};
  const auto now = view.memory_limit();
  if (now && *now <= limit) return std::nullopt;
  const auto usage = view.memory_usage();
  return usage && *usage > limit ? usage : std::nullopt;
}

bool is_written(Machine& machine, const std::string& cgroup) {
  const auto copy = machine.attribute(cgroup, core::kRecordAttribute);
  return copy && *copy && !(*copy)->starts_with(core::kUnwrittenRecord);
}

core::ShmemCharge tmpfs_memory(Machine& machine, const std::string& pod_cgroup) {
  using core::ShmemCharge;
  const auto charge = machine.memory_charge(pod_cgroup);
  if (!charge) return ShmemCharge::kNone;
  const Bytes page_size{::sysconf(_SC_PAGESIZE)};
  // Count the processors only if the charge exceeds what one of them leaves uncounted, which is
  // rare.
  const ShmemCharge held = core::shmem_charge(*charge, 1, page_size);
  if (held != ShmemCharge::kUncertain) return held;
  const std::int64_t cpus = sys::online_cpu().value() / core::kMilliPerCpu;
  return core::shmem_charge(*charge, cpus, page_size);
}

Result<std::optional<Monitor>> monitor_of(Machine& machine, Pid runtime) {
  PODQOS_ASSIGN(const auto stat, machine.stat_of(runtime));
  if (!stat) return std::nullopt;
  const Pid parent = stat->parent;
  PODQOS_ASSIGN(const auto monitor, machine.stat_of(parent));
  if (!monitor || std::ranges::find(kMonitors, monitor->name) == kMonitors.end())
    return std::nullopt;
  PODQOS_ASSIGN(auto cgroup, machine.cgroup_of(parent));
  return Monitor{.pid = parent, .cgroup = std::move(cgroup)};
}

}  // namespace podqos::cgroup
