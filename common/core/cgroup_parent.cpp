#include "common/core/cgroup_parent.h"

#include <string_view>

#include "common/base/path.h"
#include "common/base/text.h"

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

bool is_parentless_at_containerd(const ContainerFacts& facts, Driver driver) {
  return driver == Driver::kCgroupfs && facts.cgroups_path == cat("/k8s.io/", facts.id);
}

}  // namespace

bool stays_without_parent(const ContainerFacts& facts, Driver driver, const Settings& settings) {
  if (settings.without_parent == WithoutParent::kPlace) return false;
  if (is_parentless_at_crio(facts)) return true;
  return settings.without_parent == WithoutParent::kStay &&
         is_parentless_at_containerd(facts, driver);
}

bool is_left_without_parent(std::string_view cgroup, std::string_view id,
                            const Settings& settings) {
  if (settings.without_parent == WithoutParent::kPlace) return false;
  if (cgroup == cat("/crio/crio-", id) || cgroup == cat("/system.slice/crio-", id, ".scope"))
    return true;
  return settings.without_parent == WithoutParent::kStay && cgroup == cat("/k8s.io/", id);
}

std::string cgroup_parent_for(const std::string& pod_cgroup) {
  if (driver_of(pod_cgroup) == Driver::kCgroupfs) return pod_cgroup;
  return std::string{leaf_of(pod_cgroup)};
}

std::string describe_missing_parent(std::string_view id, std::string_view cgroup,
                                    const std::string& pod_cgroup) {
  return cat("container ", printable(id), " stays at ", printable(cgroup),
             " outside the pod's limits, because its engine set no cgroup parent for the pod; set "
             "the cgroup parent ",
             cgroup_parent_for(pod_cgroup), " in the engine, or placement.withoutParent");
}

}  // namespace podqos::core
