#include "common/cgroup/stray.h"

#include <algorithm>

#include "common/base/path.h"
#include "common/base/text.h"

namespace podqos::cgroup {

namespace {

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
  const std::string write = "write the pids of its processes to cgroup.procs ";
  if (machine.exists(cgroup)) return cat(write, "of that cgroup");
  const core::CgroupLayout layout = machine.layout();
  const bool v2 =
      layout.cpu == core::CgroupVersion::kV2 && layout.memory == core::CgroupVersion::kV2;
  return cat("make its cgroup again (mkdir -p /sys/fs/cgroup", v2 ? "" : "/CONTROLLER", cgroup,
             v2 ? ")" : ", for each CONTROLLER)", " and ", write,
             "there: then the limits of its pod apply again");
}

}  // namespace

std::optional<std::string> stray_cgroup(const std::vector<sys::ProcCgroup>& cgroups,
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

std::optional<std::string> describe_stray(Machine& machine, const core::PodRecord& record,
                                          const core::ContainerRecord& container) {
  if (container.state != core::ContainerState::kLive) return std::nullopt;
  const auto thread = machine.living_thread_of(container.pid);
  if (!thread || !*thread) return std::nullopt;
  const auto cgroups = machine.cgroups_of(**thread);
  if (!cgroups) return std::nullopt;
  const auto actual = stray_cgroup(*cgroups, record.cgroup, container.cgroup);
  if (!actual) return std::nullopt;
  const std::string id = printable(container.id);
  const std::string name = printable(container.name);
  return cat(
      "container ", name, name == id ? "" : cat(" (", id, ")"), " runs in cgroup ",
      printable(*actual), ", not in ", container.cgroup,
      ", where it was started: another program has moved it, and its limits no longer apply; "
      "restart it, or ",
      way_back(machine, container.cgroup));
}

}  // namespace podqos::cgroup
