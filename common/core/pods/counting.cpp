#include "common/core/pods/counting.h"

#include <cstdint>
#include <iterator>
#include <set>
#include <utility>

#include "common/base/text.h"

namespace podqos::core {

namespace {

/// Name of the init container that stands for all ended ones; no engine uses an empty name.
constexpr std::string_view kEnded;

/// The containers of a pod that have started, and those that ended before.
Pod started_part(const PodRecord& record) {
  std::set<std::string_view> started;
  for (const ContainerRecord& container : record.containers) {
    if (container.state == ContainerState::kLive) started.insert(container.name);
  }
  Pod part;
  part.init_containers = record.pod.init_containers;
  std::ranges::copy_if(
      record.pod.containers, std::back_inserter(part.containers),
      [&](const Container& container) { return started.contains(container.name); });
  return part;
}

/// Makes that init container as large as what of the pod has started. It has no limit where that
/// has none: the pod stays unlimited.
void remember_sum(PodRecord& record) {
  const Pod started = started_part(record);
  Resources sum = sum_of_containers(started);
  std::erase_if(sum.limits,
                [&](const auto& limit) { return !limit_declared(started, limit.first); });
  Pod& pod = record.pod;
  auto ended = std::ranges::find(pod.init_containers, kEnded, &Container::name);
  if (ended == pod.init_containers.end()) {
    pod.init_containers.push_back(
        {.name = std::string{kEnded}, .kind = ContainerKind::kInit, .resources = {}});
    ended = std::prev(pod.init_containers.end());
  }
  ended->resources = std::move(sum);
}

}  // namespace

Pod whole_pod(Pod pod, const std::optional<EngineSums>& sums) {
  if (!sums) return pod;
  Resources whole = pod.resources.value_or(Resources{});
  for (const auto& [name, request] : sums->resources.requests)
    whole.requests.insert_or_assign(name, request);
  for (const auto& [name, limit] : sums->resources.limits) {
    if (sums->enforced || limit_declared(pod, name)) whole.limits.insert_or_assign(name, limit);
  }
  // Empty pod-level resources would make the pod BestEffort (qos.h).
  if (whole != Resources{}) pod.resources = std::move(whole);
  return pod;
}

TierSum amounts_requested(const PodRecord& record) {
  const ResourceList requests = pod_requests(whole_pod(record.pod, record.sums));
  return {.pods = 1, .cpu = cpu_of(requests), .memory = Bytes{memory_of(requests).value()}};
}

void forget_container(PodRecord& record, const ContainerRecord& ended) {
  if (record.complete) return;
  auto& containers = record.pod.containers;
  const auto described = std::ranges::find(containers, ended.name, &Container::name);
  if (described == containers.end()) return;
  if (ended.state == ContainerState::kLive) remember_sum(record);
  containers.erase(described);
}

bool has_pods(const TiersRecord& tiers, const TreeRecord& tree) {
  return sum_of_own(tree.sums).pods != 0 ||
         std::ranges::any_of(tiers.revisits, [&](const Revisit& entry) {
           return is_below(entry.cgroup, tree.kubepods);
         });
}

const TreeRecord* tree_in_use(const TiersRecord& tiers, Driver driver) {
  const auto found = std::ranges::find_if(tiers.trees, [&](const TreeRecord& tree) {
    return driver_of(tree.kubepods) == driver && has_pods(tiers, tree);
  });
  return found == tiers.trees.end() ? nullptr : &*found;
}

namespace {

void add_amounts(TierSum& sum, TierSum pod) {
  pod.pods = 1;
  sum += pod;
}

void subtract_amounts(TierSum& sum, const TierSum& pod) {
  sum.pods = std::max<std::int64_t>(0, sum.pods - 1);
  sum.cpu = rest_of(sum.cpu, pod.cpu);
  sum.memory = rest_of(sum.memory, pod.memory);
}

/// Changes the sums that count the pod: by what counts, and by what it requests.
template <class Change>
void change_sums(TierSums& sums, const PodRecord& record, const Change& change_sum) {
  change_sum(record.kubelets_own ? sums.kubelets : sums.of(record.qos_class),
             record.counted_request);
  if (!record.kubelets_own) change_sum(sums.requested, requested_by(record));
}

/// The same for those of the node and of the pod's tree.
template <class Change>
void change_sums(TiersRecord& tiers, const PodRecord& record, const Change& change_sum) {
  change_sums(tiers.sums, record, change_sum);
  TreeRecord* tree = record.kubelets_own ? nullptr : find_tree(tiers, record.cgroup);
  if (tree != nullptr) change_sums(tree->sums, record, change_sum);
}

}  // namespace

TierSum requested_by(const PodRecord& record) {
  if (record.qos_class == QosClass::kBestEffort) return {.pods = 1, .cpu = {}, .memory = {}};
  return record.capped_request;
}

void add_pod(TiersRecord& tiers, const PodRecord& record) {
  std::erase(tiers.uncounted, record.pod.uid);
  change_sums(tiers, record, add_amounts);
}

void remove_pod(TiersRecord& tiers, const PodRecord& record) {
  if (std::erase(tiers.uncounted, record.pod.uid) == 0)
    change_sums(tiers, record, subtract_amounts);
}

TierSums sums_beside(const TiersRecord& tiers, const std::optional<PodRecord>& pod) {
  TierSums others = tiers.sums;
  // A released pod has left the sums already.
  const bool counts = pod && !pod->released_at &&
                      std::ranges::find(tiers.uncounted, pod->pod.uid) == tiers.uncounted.end();
  if (counts) change_sums(others, *pod, subtract_amounts);
  return others;
}

void count_pod(TiersRecord& tiers, const PodRecord& record,
               const std::optional<PodRecord>& before) {
  // A released pod has left the sums already.
  if (before && !before->released_at) remove_pod(tiers, *before);
  add_pod(tiers, record);
  forget_revisit(tiers, record.pod.uid);
}

void note_pending(TiersRecord& tiers, const PodRecord& record, const ContainerRecord& container) {
  forget_pending(tiers, record.pod.uid, container.key());
  if (container.state != ContainerState::kPending) return;
  tiers.pending.push_back({.uid = record.pod.uid,
                           .id = container.id,
                           .bundle = container.bundle,
                           .pid = container.pid,
                           .start_time = container.start_time,
                           .since = container.pending_since});
}

void forget_pending(TiersRecord& tiers, std::string_view uid, const ContainerKey& container) {
  std::erase_if(tiers.pending, [&](const PendingEntry& entry) {
    return entry.uid == uid && entry.key() == container;
  });
}

void note_revisit(TiersRecord& tiers, Revisit revisit) {
  forget_revisit(tiers, revisit.uid);
  tiers.revisits.push_back(std::move(revisit));
}

void forget_revisit(TiersRecord& tiers, std::string_view uid) {
  std::erase_if(tiers.revisits, [&](const Revisit& entry) { return entry.uid == uid; });
}

}  // namespace podqos::core
