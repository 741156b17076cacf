#include "common/app/node_figures.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

#include "common/app/oom_kills.h"
#include "common/base/text.h"
#include "common/cgroup/cgroupfs.h"
#include "common/cgroup/node.h"
#include "common/core/events/cgroup_write.h"
#include "common/core/pods/counting.h"

namespace podqos::app {

namespace {

/// podqos's own and a kubelet's, for each driver.
constexpr std::size_t kMaxRoots = 4;

/// What is read in the time that a page may take.
constexpr std::size_t kMaxRecords = core::kMaxPodSeries;

/// What count_pods() finds.
struct FoundPods {
  std::set<std::string> roots;        ///< of a kubelet's pods
  std::vector<core::PodRecord> pods;  ///< if any have series of their own
};

/// Sums up the pods.
Result<FoundPods> count_pods(const core::Settings& settings, store::Store& records,
                             NodeFigures& figures) {
  FoundPods all;
  PODQOS_ASSIGN(const auto uids, records.pod_uids());
  if (uids.size() > kMaxRecords)
    return fail(ErrorCode::kTooLarge, cat(settings.state_dir, ": ", uids.size(),
                                          " records, at most ", kMaxRecords, " are read"));
  const std::size_t incidents = records.incidents().size();
  for (const std::string& uid : uids) {
    auto found = records.pod(uid);
    if (!found) ++figures.unreadable;
    if (!found || !*found || (*found)->released_at) continue;
    core::PodRecord& pod = **found;
    (pod.kubelets_own ? figures.kubelets : figures.own).of(pod.qos_class) +=
        pod.kubelets_own ? pod.capped_request : pod.counted_request;
    if (pod.kubelets_own && all.roots.size() < kMaxRoots)
      if (auto root = core::root_of_pod(pod.cgroup)) all.roots.insert(std::move(*root));
    if (settings.pod_series > 0) all.pods.push_back(std::move(pod));
  }
  figures.unreadable += records.incidents().size() - incidents;
  return all;
}

PodFigures figures_of(const core::PodRecord& record, cgroup::Machine& machine) {
  PodFigures pod{.pod_namespace = record.pod.pod_namespace,
                 .name = record.pod.name,
                 .uid = record.pod.uid,
                 .qos_class = record.qos_class,
                 .oom_kills = count_oom_kills(machine, record),
                 .cgroup = {machine, record.cgroup}};
  const core::ResourceList requests = core::pod_requests(core::whole_pod(record.pod, record.sums));
  // A request of 0 is as good as none.
  if (const MilliCpu cpu = core::cpu_of(requests); cpu > MilliCpu{}) pod.cpu_request = cpu;
  if (const Bytes memory{core::memory_of(requests).value()}; memory > Bytes{})
    pod.memory_request = memory;
  pod.quotas.emplace("", pod.cgroup);
  // Two containers of one name are one that restarts: their series may not be there twice.
  for (const core::ContainerRecord& container : record.containers)
    if (!container.sandbox)
      pod.quotas.insert_or_assign(container.name.empty() ? container.id : container.name,
                                  cgroup::CgroupView{machine, container.cgroup});
  return pod;
}

/// Leaves those that use the most memory.
void leave_largest(std::vector<PodFigures>& pods, std::int64_t count) {
  std::ranges::sort(pods, [](const PodFigures& a, const PodFigures& b) {
    const auto of_a = a.cgroup.memory_usage();
    const auto of_b = b.cgroup.memory_usage();
    return of_a != of_b ? of_a > of_b : a.uid < b.uid;
  });
  const auto most = static_cast<std::size_t>(count);
  if (pods.size() > most) pods.erase(std::next(pods.begin(), count), pods.end());
}

}  // namespace

std::optional<Bytes> TierFigures::memory_limit_gap() const {
  const auto limit = cgroup.memory_limit();
  if (!limit || !wanted_memory_limit) return std::nullopt;
  return rest_of(*limit, std::max(*wanted_memory_limit, floor));
}

Result<NodeFigures> node_figures(const core::Settings& settings, store::Store& records) {
  NodeFigures figures;
  PODQOS_ASSIGN(auto found, count_pods(settings, records, figures));
  std::set<std::string>& roots = found.roots;
  for (const core::TreeRecord& tree : records.node().trees)
    roots.insert(tree.kubepods);
  // Also one that has begun since the records were opened.
  figures.interrupted = records.dirty() || records.is_marked();
  for (const std::string& incident : records.incidents())
    figures.incidents += cat(figures.incidents.empty() ? "" : "; ", incident);
  if (roots.empty() && found.pods.empty()) return figures;
  PODQOS_ASSIGN(auto cgroups, cgroup::Cgroupfs::open({.access = cgroup::Access::kRead}));
  PODQOS_ASSIGN(const auto capacity, cgroup::node_capacity(settings));
  figures.machine = std::make_unique<cgroup::Cgroupfs>(std::move(cgroups));
  for (const core::PodRecord& pod : found.pods)
    figures.pods.push_back(figures_of(pod, *figures.machine));
  leave_largest(figures.pods, settings.pod_series);
  for (const std::string& root : roots) {
    core::TierValues rule;
    if (const core::TreeRecord* tree = core::tree_at(records.node(), root)) {
      rule = core::wanted_tiers(tree->sums, records.node().sums, settings, capacity);
      rule.root = core::root_limits(records.node(), *tree, settings, capacity);
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
