#include "common/core/pods/placement.h"

#include <algorithm>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/pods/identity.h"

namespace podqos::core {

namespace {

bool is_parentless_at_crio(const ContainerFacts& facts) {
  if (facts.cgroups_path && !facts.cgroups_path->empty()) {
    std::string_view prefix = *facts.cgroups_path;
    if (!prefix.ends_with(facts.id)) return false;
    prefix.remove_suffix(facts.id.size());
    return prefix == "/crio/crio-" || prefix == "system.slice:crio:" || prefix == "crio-";
  }
  const auto manager = facts.annotations.find("io.container.manager");
  // containerd passes pod annotations on, so beside its own keys this one may be the author's.
  return manager != facts.annotations.end() && manager->second == "cri-o" &&
         !facts.annotations.contains("io.kubernetes.cri.container-type");
}

constexpr std::string_view kScopeSuffix = ".scope";

/// The engine's own name if it contains the id, else one made of the id.
std::string wanted_leaf(const ContainerFacts& facts, bool systemd) {
  const std::string_view path = facts.cgroups_path ? *facts.cgroups_path : std::string_view{};
  std::string_view leaf = leaf_of(path);
  if (systemd) {
    const auto unit = parse_systemd_cgroups_path(path);
    if (unit && unit->name.find(facts.id) != std::string::npos && !unit->name.ends_with(".slice"))
      return cat(unit->prefix, "-", unit->name, kScopeSuffix);
    leaf = scope_of(path);
    if (!leaf.empty() && leaf.find(facts.id) != std::string_view::npos) return std::string{leaf};
    // Unit names are unique on a machine, but two runtimes may use one id.
    return cat("podqos-", facts.id, "-", hash_of(facts), kScopeSuffix);
  }
  return leaf.find(facts.id) == std::string_view::npos ? facts.id : std::string{leaf};
}

}  // namespace

bool stays_without_parent(const ContainerFacts& facts, Driver driver, const Settings& settings) {
  if (settings.without_parent == WithoutParent::kPlace) return false;
  if (is_parentless_at_crio(facts)) return true;
  return settings.without_parent == WithoutParent::kStay && driver == Driver::kCgroupfs &&
         facts.cgroups_path == cat("/k8s.io/", facts.id);  // as containerd names it
}

bool is_left_without_parent(std::string_view cgroup, std::string_view id,
                            const Settings& settings) {
  if (settings.without_parent == WithoutParent::kPlace) return false;
  // crun makes a cgroup below its scope.
  if (is_at_or_below(cgroup, cat("/crio/crio-", id)) ||
      is_at_or_below(cgroup, cat("/system.slice/crio-", id, ".scope")))
    return true;
  return settings.without_parent == WithoutParent::kStay && cgroup == cat("/k8s.io/", id);
}

std::string describe_missing_parent(std::string_view id, std::string_view cgroup,
                                    const std::string& pod_cgroup) {
  const bool systemd = driver_of(pod_cgroup) == Driver::kSystemd;
  return cat("container ", printable(id), " stays at ", printable(cgroup),
             " outside the pod's limits, because its engine set no cgroup parent for the pod; set "
             "the cgroup parent ",
             systemd ? leaf_of(pod_cgroup) : pod_cgroup,
             " in the engine, or placement.withoutParent");
}

Result<std::string> container_leaf(const ContainerFacts& facts, const std::string& pod_cgroup,
                                   std::span<const ContainerRecord> known) {
  const bool systemd = driver_of(pod_cgroup) == Driver::kSystemd;
  std::string leaf = wanted_leaf(facts, systemd);
  const std::string monitor = monitor_path(pod_cgroup);
  const auto taken = [&](const std::string& name) {
    const std::string path = cat(pod_cgroup, "/", name);
    if (path == monitor) return true;
    return std::ranges::any_of(known, [&](const ContainerRecord& other) {
      return other.cgroup == path && other.key() != facts.key();
    });
  };
  // Two runtimes may use one id, but not one bundle.
  if (taken(leaf)) {
    if (systemd) leaf.resize(leaf.size() - kScopeSuffix.size());
    leaf = cat(leaf.substr(0, 128), "-", hash_of(facts), systemd ? kScopeSuffix : "");
  }
  PODQOS_TRY(check_cgroup_component(leaf));
  if (taken(leaf))
    return fail(ErrorCode::kConflict, cat("cgroup ", pod_cgroup, "/", leaf,
                                          " belongs to another container: use another id"));
  return leaf;
}

}  // namespace podqos::core
