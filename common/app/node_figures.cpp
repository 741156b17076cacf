#include "common/app/node_figures.h"

#include <set>
#include <utility>

#include "common/cgroup/cgroupfs.h"
#include "common/cgroup/node.h"
#include "common/codec/record_json.h"
#include "common/core/cgroups/pod_plan.h"
#include "common/core/events/root.h"
#include "common/core/events/tier_write.h"
#include "common/core/pods/counting.h"

namespace podqos::app {

namespace {

/// podqos's own and a kubelet's, for each driver.
constexpr std::size_t kMaxRoots = 4;

/// Sums up the pods, and adds the roots of those of a kubelet.
void count_pods(const store::StoredRecords& state, NodeFigures& figures,
                std::set<std::string>& roots) {
  for (const auto& [uid, text] : state.pods) {
    const auto pod = codec::parse_pod_record(text);
    if (!pod) ++figures.unreadable;
    if (!pod || pod->released_at) continue;
    (pod->adopted ? figures.adopted : figures.own).of(pod->qos_class) +=
        pod->adopted ? pod->claimed : pod->granted;
    if (!pod->adopted || roots.size() >= kMaxRoots) continue;
    if (auto root = core::root_of_pod(pod->cgroup)) roots.insert(std::move(*root));
  }
}

}  // namespace

Result<NodeFigures> node_figures(const core::Settings& settings,
                                 const store::StoredRecords& state) {
  NodeFigures figures{.interrupted = state.dirty, .unreadable = state.unreadable};
  std::set<std::string> roots;
  for (const core::TreeRecord& tree : state.tiers.trees)
    roots.insert(tree.kubepods);
  count_pods(state, figures, roots);
  if (roots.empty()) return figures;
  PODQOS_ASSIGN(auto cgroups, cgroup::Cgroupfs::open({.access = cgroup::Access::kRead}));
  PODQOS_ASSIGN(const auto capacity, cgroup::node_capacity(settings));
  figures.machine = std::make_unique<cgroup::Cgroupfs>(std::move(cgroups));
  for (const std::string& root : roots) {
    core::TierValues rule;
    if (const core::TreeRecord* tree = core::tree_at(state.tiers, root)) {
      rule = core::wanted_tiers(tree->sums, state.tiers.sums, settings, capacity);
      rule.root = core::root_limits(state.tiers, *tree, settings, capacity);
    }
    for (const auto& [qos_class, wanted] :
         {std::pair{core::QosClass::kGuaranteed, rule.root.memory_limit},
          std::pair{core::QosClass::kBurstable, rule.burstable.memory_limit},
          std::pair{core::QosClass::kBestEffort, rule.besteffort.memory_limit}}) {
      TierFigures tier{.qos_class = qos_class,
                       .wanted_memory_limit = wanted,
                       .cgroup = {*figures.machine, core::tier_path(root, qos_class)}};
      // Omit a tier that has just been removed.
      if (tier.cgroup.exists()) figures.tiers.push_back(std::move(tier));
    }
  }
  return figures;
}

}  // namespace podqos::app
