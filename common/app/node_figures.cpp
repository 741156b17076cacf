#include "common/app/node_figures.h"

#include <set>
#include <utility>

#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/cgroup/node.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/events/cgroup_write.h"
#include "common/core/events/convergence.h"
#include "common/core/events/root.h"
#include "common/core/pods/counting.h"

namespace podqos::app {

namespace {

/// podqos's own and a kubelet's, for each driver.
constexpr std::size_t kMaxRoots = 4;

/// What is read in the time that a page may take.
constexpr std::size_t kMaxRecords = 4096;

/// Sums up the pods, and adds the roots of those of a kubelet.
Status count_pods(const std::string& state_dir, store::Store& records, NodeFigures& figures,
                  std::set<std::string>& roots) {
  PODQOS_ASSIGN(const auto uids, records.pod_uids());
  if (uids.size() > kMaxRecords)
    return fail(ErrorCode::kTooLarge,
                cat(state_dir, ": ", uids.size(), " records, at most ", kMaxRecords, " are read"));
  const std::size_t incidents = records.incidents().size();
  for (const std::string& uid : uids) {
    const auto found = records.pod(uid);
    if (!found) ++figures.unreadable;
    if (!found || !*found || (*found)->released_at) continue;
    const core::PodRecord& pod = **found;
    (pod.kubelets_own ? figures.kubelets : figures.own).of(pod.qos_class) +=
        pod.kubelets_own ? pod.capped_request : pod.counted_request;
    if (!pod.kubelets_own || roots.size() >= kMaxRoots) continue;
    if (auto root = core::root_of_pod(pod.cgroup)) roots.insert(std::move(*root));
  }
  figures.unreadable += records.incidents().size() - incidents;
  return {};
}

}  // namespace

std::optional<Bytes> TierFigures::memory_limit_gap() const {
  const auto limit = cgroup.memory_limit();
  if (!limit || !wanted_memory_limit) return std::nullopt;
  return core::gap_of_limit(*limit, *wanted_memory_limit, floor);
}

Result<NodeFigures> node_figures(const core::Settings& settings, store::Store& records) {
  NodeFigures figures;
  std::set<std::string> roots;
  for (const core::TreeRecord& tree : records.tiers().trees)
    roots.insert(tree.kubepods);
  PODQOS_TRY(count_pods(settings.state_dir, records, figures, roots));
  // Also one that has begun since the records were opened.
  figures.interrupted = records.dirty() || records.is_marked();
  for (const std::string& incident : records.incidents())
    figures.incidents += cat(figures.incidents.empty() ? "" : "; ", incident);
  if (roots.empty()) return figures;
  PODQOS_ASSIGN(auto cgroups, cgroup::Cgroupfs::open({.access = cgroup::Access::kRead}));
  PODQOS_ASSIGN(const auto capacity, cgroup::node_capacity(settings));
  figures.machine = std::make_unique<cgroup::Cgroupfs>(std::move(cgroups));
  for (const std::string& root : roots) {
    core::TierValues rule;
    if (const core::TreeRecord* tree = core::tree_at(records.tiers(), root)) {
      rule = core::wanted_tiers(tree->sums, records.tiers().sums, settings, capacity);
      rule.root = core::root_limits(records.tiers(), *tree, settings, capacity);
    }
    for (const auto& [qos_class, wanted] :
         {std::pair{core::QosClass::kGuaranteed, rule.root.memory_limit},
          std::pair{core::QosClass::kBurstable, rule.burstable.memory_limit},
          std::pair{core::QosClass::kBestEffort, rule.besteffort.memory_limit}}) {
      TierFigures tier{.qos_class = qos_class,
                       .wanted_memory_limit = wanted,
                       .floor = settings.tier_memory_floor,
                       .cgroup = {*figures.machine, core::tier_path(root, qos_class)}};
      // Omit a tier that has just been removed.
      if (tier.cgroup.exists()) figures.tiers.push_back(std::move(tier));
    }
  }
  return figures;
}

}  // namespace podqos::app
