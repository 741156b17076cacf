#include "ctl/node/node_checks.h"

#include <algorithm>
#include <utility>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/cgroups/layout.h"
#include "common/core/cgroups/naming.h"
#include "common/core/events/choose_root.h"
#include "common/core/pods/counting.h"
#include "ctl/cli/table.h"

namespace podqos::ctl {

Finding finding_of(std::string_view name, std::string text, std::string_view subject) {
  const NodeCheck& check = *std::ranges::find(kNodeChecks, name, &NodeCheck::name);
  return {.group = std::string{check.group},
          .name = std::string{name},
          .outcome = check.outcome,
          .text = std::move(text),
          .remedy = check.remedy,
          .subject = std::string{subject}};
}

std::vector<std::string> unmanaged_pods(const std::string& tier,
                                        const std::set<std::string, std::less<>>& known,
                                        cgroup::Machine& cgroups) {
  std::vector<std::string> warnings;
  const auto children = cgroups.children(tier);
  if (!children) return warnings;
  for (const std::string& child : *children) {
    const std::string path = cat(tier, "/", child);
    const auto pod = core::find_pod_cgroup(path);
    // An empty one is that of a sandbox whose container is yet to come, or about to be removed.
    if (pod && pod->pod_path == path && !known.contains(path) &&
        cgroups.populated(path).value_or(true))
      warnings.push_back(cat("pod cgroup ", path, " is not managed by podqos"));
  }
  return warnings;
}

std::vector<std::string> lacking_controllers(const core::TreeRecord& tree,
                                             cgroup::Machine& cgroups) {
  std::vector<std::string> lacking;
  // systemd disables others where no unit needs them.
  for (const auto controller :
       {core::Controller::kCpu, core::Controller::kMemory, core::Controller::kPids}) {
    const core::ControllerRow& row = core::row_of(controller);
    if (cgroups.layout().*row.version != core::CgroupVersion::kV2) continue;
    const auto enabled = cgroups.read(tree.kubepods, row.controller, "cgroup.subtree_control");
    if (enabled && !has_word(*enabled, row.v2_name)) lacking.emplace_back(row.v2_name);
  }
  if (lacking.empty()) return {};
  return {cat("the pods below ", tree.kubepods, " have no values of ", join(lacking, ", "),
              ": not enabled in cgroup.subtree_control; run podqosctl reconcile, which tries again "
              "and says why")};
}

std::vector<std::string> unusable_roots(const core::Settings& settings, const NodeRecords& records,
                                        cgroup::Machine& cgroups) {
  std::vector<std::string> warnings;
  for (const auto driver : {core::Driver::kCgroupfs, core::Driver::kSystemd}) {
    const std::string root = core::root_path(settings.cgroup_root, driver);
    const bool kubelets = std::ranges::any_of(records.pods, [&](const core::PodRecord& record) {
      return record.kubelets_own && is_below(record.cgroup, root);
    });
    if (kubelets || core::tree_at(records.node, root) != nullptr || !cgroups.exists(root)) continue;
    const auto mark = cgroups.attribute(root, core::kMadeAttribute);
    if (!mark) continue;
    warnings.push_back(
        *mark == core::kMade
            ? cat("cgroup ", root, " was created by podqos, but ", settings.state_dir,
                  " has lost the records of its pods: run podqosctl reconcile, which restores them")
            : cat("cgroup ", root,
                  " exists but was not created by podqos, so no pods are placed in it: "
                  "set cgroupRoot to a cgroup reserved for podqos"));
  }
  return warnings;
}

}  // namespace podqos::ctl
