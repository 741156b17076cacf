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

/// Sums up the snapshot and reads the tiers of all roots in it.
class FiguresBuilder {
 public:
  FiguresBuilder(const core::Settings& settings, const store::StoredRecords& state)
      : settings_(settings), state_(state) {}

  Result<NodeFigures> build() {
    count_pods();
    if (roots_.empty()) return std::move(figures_);
    PODQOS_ASSIGN(auto cgroups, cgroup::Cgroupfs::open({.access = cgroup::Access::kRead}));
    PODQOS_ASSIGN(const auto capacity, cgroup::node_capacity(settings_));
    figures_.machine = std::make_unique<cgroup::Cgroupfs>(std::move(cgroups));
    for (const std::string& root : roots_) {
      core::TierValues rule;
      if (const core::TreeRecord* tree = core::tree_at(state_.tiers, root)) {
        rule = core::wanted_tiers(tree->sums, state_.tiers.sums, settings_, capacity);
        rule.root = core::root_limits(state_.tiers, *tree, settings_, capacity);
      }
      add_tier(root, core::QosClass::kGuaranteed, rule.root.memory_limit);
      add_tier(root, core::QosClass::kBurstable, rule.burstable.memory_limit);
      add_tier(root, core::QosClass::kBestEffort, rule.besteffort.memory_limit);
    }
    return std::move(figures_);
  }

 private:
  void count_pods() {
    figures_.interrupted = state_.dirty;
    figures_.unreadable = state_.unreadable;
    for (const core::TreeRecord& tree : state_.tiers.trees)
      roots_.insert(tree.kubepods);
    for (const auto& [uid, text] : state_.pods) {
      const auto record = codec::parse_pod_record(text);
      if (record)
        count_pod(*record);
      else
        ++figures_.unreadable;
    }
  }

  void count_pod(const core::PodRecord& pod) {
    if (pod.released_at) return;
    (pod.adopted ? figures_.adopted : figures_.own).of(pod.qos_class) +=
        pod.adopted ? pod.claimed : pod.granted;
    if (!pod.adopted || roots_.size() >= kMaxRoots) return;
    if (auto root = core::root_of_pod(pod.cgroup)) roots_.insert(std::move(*root));
  }

  void add_tier(const std::string& root, core::QosClass qos_class, std::optional<Bytes> wanted) {
    TierFigures tier{.qos_class = qos_class,
                     .wanted_memory_limit = wanted,
                     .cgroup = {*figures_.machine, core::tier_path(root, qos_class)}};
    // Omit a tier that has just been removed.
    if (tier.cgroup.exists()) figures_.tiers.push_back(std::move(tier));
  }

  const core::Settings& settings_;
  const store::StoredRecords& state_;
  NodeFigures figures_;
  std::set<std::string> roots_;
};

}  // namespace

Result<NodeFigures> node_figures(const core::Settings& settings,
                                 const store::StoredRecords& state) {
  return FiguresBuilder{settings, state}.build();
}

}  // namespace podqos::app
