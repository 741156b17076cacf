#include "common/cgroup/observe_root.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/cgroup/cgroup_view.h"
#include "common/cgroup/pod_cgroup.h"
#include "common/core/cgroups/layout.h"
#include "common/core/cgroups/naming.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/events/choose_root.h"
#include "common/core/kubernetes/tier.h"
#include "common/core/pods/counting.h"

namespace podqos::cgroup {

namespace {

/// True if processes are in the cgroup itself. Not by all that are below it: pods' containers may
/// have nested any number of cgroups.
bool holds_own_processes(Machine& machine, const std::string& cgroup) {
  const bool has_memory = machine.layout_without_hugepages().memory.has_value();
  const auto pids = machine.read(
      cgroup, has_memory ? core::Controller::kMemory : core::Controller::kCpu, "cgroup.procs");
  return pids ? !pids->empty() : pids.error().code != ErrorCode::kNotFound;
}

/// True if a cgroup that engines make on the way to a pod has no values, no processes of its own
/// and no children other than `pods` and those in `known`.
bool is_on_the_way(Machine& machine, const std::string& cgroup,
                   const std::vector<std::string>& known) {
  const auto children = machine.children(cgroup);
  if (!children || !is_untouched(machine, cgroup) || holds_own_processes(machine, cgroup))
    return false;
  return std::ranges::all_of(*children, [&](const std::string& child) {
    const std::string path = cat(cgroup, "/", child);
    if (std::ranges::find(known, path) != known.end()) return true;
    const auto pod = core::find_pod_cgroup(path);
    return pod && pod->pod_path == path;
  });
}

/// True if the cgroups on the way down to the root, which may be missing, are all that is there.
bool holds_only(Machine& machine, const std::string& cgroup, const std::string& kubepods) {
  const std::vector<std::string> way = core::with_parents(kubepods);
  return is_on_the_way(machine, cgroup, way) && !machine.children(cgroup)->empty();
}

/// True if an engine has made the root for the path of this container: it holds nothing but tiers
/// and pods, whatever is in those, and all its values are a new cgroup's.
bool is_made_for(Machine& machine, const std::string& kubepods, const std::string& container) {
  const auto pod = core::find_pod_cgroup(container);
  if (!pod || !is_below(container, kubepods)) return false;
  if (machine.exists(pod->pod_path) && !is_untouched(machine, pod->pod_path)) return false;
  const std::vector<std::string> known = core::tiers_and_root(kubepods);
  return std::ranges::all_of(known, [&](const std::string& cgroup) {
    return !machine.exists(cgroup) || is_on_the_way(machine, cgroup, known);
  });
}

}  // namespace

Result<bool> is_marked(Machine& machine, const std::string& cgroup) {
  auto mark = machine.attribute(cgroup, core::kMadeAttribute);
  // Who was interrupted while removing a tree leaves it in some hierarchies of v1, without the
  // mark.
  if (!mark && mark.error().code == ErrorCode::kNotFound) return false;
  if (!mark) return fail(std::move(mark).error());
  return *mark == core::kMade;
}

Result<core::CgroupOrigin> origin_of_root(Machine& machine, const std::string& root,
                                          const std::optional<std::string>& container) {
  using core::CgroupOrigin;
  if (!machine.exists(root)) return CgroupOrigin::kNone;
  PODQOS_ASSIGN(const auto marked, is_marked(machine, root));
  if (marked) return CgroupOrigin::kPodqos;
  return container && is_made_for(machine, root, *container) ? CgroupOrigin::kEngine
                                                             : CgroupOrigin::kOther;
}

bool is_made_above(Machine& machine, const std::string& cgroup, const std::string& kubepods) {
  return is_marked(machine, cgroup).value_or(false) ||
         (is_untouched(machine, cgroup) && holds_only(machine, cgroup, kubepods));
}

std::string marked_top(Machine& machine, const std::string& kubepods) {
  std::string top;
  for (std::string& path : core::with_parents(kubepods)) {
    if (path == kubepods) continue;
    if (!is_marked(machine, path).value_or(false)) break;
    top = std::move(path);
  }
  return top;
}

std::optional<std::string> holder_of(Machine& machine, const std::string& kubepods) {
  const std::vector<std::string> tiers = core::tiers_and_root(kubepods);
  for (const std::string& tier : {kubepods, tiers[0], tiers[1]}) {
    const auto children = machine.children(tier);
    if (!children) continue;
    for (const std::string& child : *children) {
      std::string path = cat(tier, "/", child);
      if (std::ranges::find(tiers, path) == tiers.end()) return path;
    }
  }
  return std::nullopt;
}

core::NodeCpu observe_node_cpu(Machine& machine, const core::NodeState& state,
                               const core::Settings& settings, const core::NodeCapacity& capacity) {
  core::NodeCpu node{.allocatable = core::allocatable_cpu(settings, capacity),
                     .requested = core::sum_of_own(state.sums).cpu,
                     .kubelets = state.sums.kubelets.cpu,
                     .rule = settings.root_cpu_weight,
                     .reserved = core::reserved_cpu(settings)};
  const auto weight_of = [&](const std::string& path) -> std::optional<std::int64_t> {
    const CgroupView cgroup{machine, path};
    if (const auto shares = cgroup.cpu_shares()) return shares->value();
    if (const auto weight = cgroup.cpu_weight()) return weight->value();
    return std::nullopt;
  };
  if (node.rule.rule == core::RootCpuWeight::Rule::kProportional)
    node.system = weight_of("/system.slice");
  if (state.sums.kubelets.pods == 0) return node;
  for (const core::Driver driver : {core::Driver::kCgroupfs, core::Driver::kSystemd}) {
    const std::string root = core::root_path("/", driver);
    if (core::tree_at(state, root) != nullptr) continue;
    node.kubelets_root = weight_of(root);
    if (node.kubelets_root) break;
  }
  return node;
}

}  // namespace podqos::cgroup
