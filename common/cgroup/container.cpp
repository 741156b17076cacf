#include "common/cgroup/container.h"

#include <algorithm>
#include <cstddef>
#include <ranges>
#include <string_view>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/core/cgroups/layout.h"
#include "common/sys/clock.h"

namespace podqos::cgroup {

namespace {

/// True if processes have outlived the container's init in its cgroup, and all were killed.
bool are_killed(Machine& machine, const std::string& cgroup) {
  const auto others = machine.processes(cgroup);
  // Bounded: the pod's author decides how many there are, and the lock is held.
  constexpr std::ptrdiff_t kMaxChecked = 64;
  return others && !others->empty() &&
         std::ranges::all_of(*others | std::views::take(kMaxChecked), sys::is_ending);
}

/// True for a hierarchy with the cpu or memory controller; the one of cgroup v2 if no v1 hierarchy
/// has them.
bool bounds_pods(const sys::ProcCgroup& cgroup, bool is_unified) {
  if (cgroup.controllers.empty()) return is_unified;
  return std::ranges::any_of(cgroup.controllers, [](const std::string& controller) {
    return controller == "cpu" || controller == "memory";
  });
}

/// How to put a container's processes back into its cgroup. systemd removes an empty scope, and
/// so the directory that the processes belong to.
std::string way_back(Machine& machine, const std::string& cgroup) {
  if (machine.exists(cgroup)) return cat("write its pids to ", cgroup, "/cgroup.procs");
  const core::CgroupLayout layout = machine.layout();
  const bool v2 =
      layout.cpu == core::CgroupVersion::kV2 && layout.memory == core::CgroupVersion::kV2;
  return cat("make /sys/fs/cgroup", v2 ? "" : "/CONTROLLER", cgroup, " again",
             v2 ? "" : " for each CONTROLLER", " and write its pids to cgroup.procs there");
}

}  // namespace

bool lives(Machine& machine, const core::ContainerRecord& container) {
  return !core::takes_too_long(container.pending_since, BootSeconds{sys::seconds_since_boot()}) &&
         machine.is_alive(container.pid, container.start_time);
}

Result<std::optional<core::Process>> find_init(Machine& machine,
                                               const core::ContainerRecord& container) {
  // A cgroup that is shared with other containers proves nothing.
  const std::string_view leaf = leaf_of(container.cgroup);
  if (container.id.empty() || leaf.find(container.id) == std::string_view::npos)
    return std::nullopt;
  PODQOS_ASSIGN(const auto pids, machine.processes(container.cgroup));
  // The oldest process is the init: all others descend from it or joined later.
  std::optional<core::Process> oldest;
  for (const Pid pid : pids) {
    const auto start = machine.start_time_of(pid);
    if (!start || !*start || (oldest && **start >= oldest->start_time)) continue;
    oldest = core::Process{.pid = pid, .start_time = **start};
  }
  return oldest;
}

bool has_living_container(Machine& machine, const core::PodRecord& record) {
  return std::ranges::any_of(record.containers, [&](const core::ContainerRecord& container) {
    return lives(machine, container);
  });
}

core::EndState observe_end_state(Machine& machine, const core::ContainerRecord& container,
                                 Pid caller) {
  using core::EndState;
  // Its creation failed: the process that placed it reports its end, and nothing confirmed it.
  const bool never_started =
      container.state == core::ContainerState::kPending && container.pid == caller;
  if (never_started) return EndState::kDone;
  // Runtimes remove the cgroup first, but wait only briefly for the kernel to allow it. The
  // hierarchy of a v1 host that has attributes tells of it without a look at all of them.
  const auto copy = machine.attribute(container.cgroup, core::kRecordAttribute);
  if (!copy && copy.error().code == ErrorCode::kNotFound) return EndState::kDone;
  if (lives(machine, container))
    return sys::is_ending(container.pid) ? EndState::kDying : EndState::kStillAlive;
  return are_killed(machine, container.cgroup) ? EndState::kDying : EndState::kDone;
}

std::optional<std::string> misplaced_cgroup(const std::vector<sys::ProcCgroup>& cgroups,
                                            const std::string& pod_cgroup,
                                            const std::string& recorded) {
  const bool is_unified =
      std::ranges::none_of(cgroups, [](const auto& each) { return bounds_pods(each, false); });
  const bool in_pod = is_at_or_below(recorded, pod_cgroup);
  for (const sys::ProcCgroup& cgroup : cgroups) {
    // "/../x": outside this process's cgroup namespace, so the full path is unknown.
    if (!bounds_pods(cgroup, is_unified) || cgroup.path.starts_with("/..")) continue;
    if (is_at_or_below(cgroup.path, recorded) ||
        (in_pod && is_at_or_below(cgroup.path, pod_cgroup)))
      continue;
    return cgroup.path;
  }
  return std::nullopt;
}

std::optional<std::string> describe_misplaced(Machine& machine, const core::PodRecord& record,
                                              const core::ContainerRecord& container) {
  if (container.state != core::ContainerState::kLive) return std::nullopt;
  const auto stray_of = [&](Pid thread) {
    const auto cgroups = machine.cgroups_of(thread);
    return cgroups ? misplaced_cgroup(*cgroups, record.cgroup, container.cgroup) : std::nullopt;
  };
  auto actual = stray_of(container.pid);
  if (!actual) return std::nullopt;
  // That of a leader that has ended tells nothing of the threads that go on.
  const auto thread = machine.living_thread_of(container.pid);
  if (!thread || !*thread) return std::nullopt;
  if (**thread != container.pid) actual = stray_of(**thread);
  if (!actual) return std::nullopt;
  const std::string id = printable(container.id);
  const std::string name = printable(container.name);
  return cat("another program moved container ", name, name == id ? "" : cat(" (", id, ")"),
             " to cgroup ", printable(*actual), ", where its limits do not apply: restart it, or ",
             way_back(machine, container.cgroup));
}

std::vector<core::HeldResources> held_by_containers(Machine& machine,
                                                    const core::PodRecord& record) {
  std::vector<core::HeldResources> held;
  held.reserve(record.containers.size());
  for (const core::ContainerRecord& container : record.containers) {
    const CgroupView own{machine, container.cgroup};
    held.push_back(core::tells_of_updates(record, container) ? held_by(machine, container, own)
                                                             : core::HeldResources{});
  }
  return held;
}

}  // namespace podqos::cgroup
