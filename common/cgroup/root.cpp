#include "common/cgroup/root.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/cgroup/kubelet.h"
#include "common/cgroup/pod_cgroup.h"
#include "common/core/attributes.h"
#include "common/core/pod_plan.h"
#include "common/core/root_plan.h"

namespace podqos::cgroup {

namespace {

/// True if the root is untouched and `container` is its only descendant.
bool holds_only(Machine& machine, const std::string& kubepods, const std::string& container) {
  if (!container.starts_with(cat(kubepods, "/"))) return false;
  std::string path = kubepods;
  while (path != container) {
    if (!is_untouched(machine, path)) return false;
    const std::size_t end = container.find('/', path.size() + 1);
    const std::string next = container.substr(0, end);
    const auto children = machine.children(path);
    if (!children || children->size() != 1 || cat(path, "/", children->front()) != next)
      return false;
    path = next;
  }
  return true;
}

}  // namespace

Result<bool> is_marked(Machine& machine, const std::string& cgroup) {
  auto mark = machine.attribute(cgroup, core::kMadeAttribute);
  if (!mark) return fail(std::move(mark).error());
  return *mark == core::kMade;
}

Result<core::RootSnapshot> observe_root(Machine& machine, const std::string& root,
                                        const std::optional<std::string>& just_made) {
  core::RootSnapshot snapshot;
  snapshot.exists = machine.exists(root);
  if (snapshot.exists) {
    auto marked = is_marked(machine, root);
    if (!marked) return fail(std::move(marked).error());
    snapshot.marked = *marked;
    snapshot.made_by_runtime = !*marked && just_made && holds_only(machine, root, *just_made);
  }
  if (core::is_kubelets_root(root) && core::is_available(snapshot))
    snapshot.kubelet = find_kubelet();
  return snapshot;
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

}  // namespace podqos::cgroup
