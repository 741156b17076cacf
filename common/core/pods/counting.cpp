#include "common/core/pods/counting.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/path.h"
#include "common/base/text.h"
#include "common/core/cgroups/naming.h"
#include "common/core/kubernetes/tier.h"

namespace podqos::core {

bool has_pods(const TiersRecord& tiers, const TreeRecord& tree) {
  return sum_of_own(tree.sums).pods != 0 ||
         std::ranges::any_of(tiers.retained, [&](const RetainedEntry& entry) {
           return is_below(entry.cgroup, tree.kubepods);
         });
}

const TreeRecord* tree_in_use(const TiersRecord& tiers, Driver driver) {
  const auto found = std::ranges::find_if(tiers.trees, [&](const TreeRecord& tree) {
    return driver_of(tree.kubepods) == driver && has_pods(tiers, tree);
  });
  return found == tiers.trees.end() ? nullptr : &*found;
}

void count_trees(TiersRecord& tiers, const PodRecords& living) {
  for (const auto& [uid, record] : living) {
    TreeRecord* tree = record.adopted ? nullptr : find_tree(tiers, record.cgroup);
    if (tree != nullptr) add_pod(tree->sums, record);
  }
}

namespace {

TierSum& sum_of(TierSums& sums, const PodRecord& record) {
  return record.adopted ? sums.adopted : sums.of(record.qos_class);
}

void add(TierSum& sum, TierSum pod) {
  pod.pods = 1;
  sum += pod;
}

void subtract(TierSum& sum, const TierSum& pod) {
  const auto left = [](auto all, auto part) {
    return std::max<std::int64_t>(0, saturating_sub(all.value(), part.value()));
  };
  sum.pods = std::max<std::int64_t>(0, sum.pods - 1);
  sum.cpu = MilliCpu{left(sum.cpu, pod.cpu)};
  sum.memory = Bytes{left(sum.memory, pod.memory)};
}

/// The tree that counts the pod; nullptr for an adopted one.
TreeRecord* tree_of(TiersRecord& tiers, const PodRecord& record) {
  return record.adopted ? nullptr : find_tree(tiers, record.cgroup);
}

}  // namespace

TierSum requested_by(const PodRecord& record) {
  if (record.qos_class == QosClass::kBestEffort) return {.pods = 1, .cpu = {}, .memory = {}};
  return record.claimed;
}

void add_pod(TierSums& sums, const PodRecord& record) {
  add(sum_of(sums, record), record.granted);
  if (!record.adopted) add(sums.requested, requested_by(record));
}

void remove_pod(TierSums& sums, const PodRecord& record) {
  subtract(sum_of(sums, record), record.granted);
  if (!record.adopted) subtract(sums.requested, requested_by(record));
}

void add_pod(TiersRecord& tiers, const PodRecord& record) {
  std::erase(tiers.uncounted, record.pod.uid);
  add_pod(tiers.sums, record);
  if (TreeRecord* tree = tree_of(tiers, record)) add_pod(tree->sums, record);
}

void remove_pod(TiersRecord& tiers, const PodRecord& record) {
  if (std::erase(tiers.uncounted, record.pod.uid) != 0) return;
  remove_pod(tiers.sums, record);
  if (TreeRecord* tree = tree_of(tiers, record)) remove_pod(tree->sums, record);
}

TierSums sums_beside(const TiersRecord& tiers, const std::optional<PodRecord>& pod) {
  TierSums others = tiers.sums;
  // A released pod has left the sums already.
  const bool counts = pod && !pod->released_at &&
                      std::ranges::find(tiers.uncounted, pod->pod.uid) == tiers.uncounted.end();
  if (counts) remove_pod(others, *pod);
  return others;
}

void count_pod(TiersRecord& tiers, const PodRecord& record,
               const std::optional<PodRecord>& before) {
  // A released pod has left the sums already.
  if (before && !before->released_at) remove_pod(tiers, *before);
  add_pod(tiers, record);
  forget_retained(tiers, record.pod.uid);
}

PendingEntry pending_entry(const PodRecord& record, const ContainerRecord& container) {
  return {.uid = record.pod.uid,
          .id = container.id,
          .bundle = container.bundle,
          .pid = container.pid,
          .start_time = container.start_time};
}

void note_pending(TiersRecord& tiers, const PodRecord& record, const ContainerRecord& container) {
  // Of whatever pod: a container belongs to one only.
  std::erase_if(tiers.pending,
                [&](const PendingEntry& entry) { return entry.key() == container.key(); });
  if (container.state == ContainerState::kPending)
    tiers.pending.push_back(pending_entry(record, container));
}

void forget_pending(TiersRecord& tiers, std::string_view uid, const ContainerKey& container) {
  std::erase_if(tiers.pending, [&](const PendingEntry& entry) {
    return entry.uid == uid && entry.key() == container;
  });
}

void retain_pod(TiersRecord& tiers, RetainedEntry entry) {
  forget_retained(tiers, entry.uid);
  tiers.retained.push_back(std::move(entry));
}

void forget_retained(TiersRecord& tiers, std::string_view uid) {
  std::erase_if(tiers.retained, [&](const RetainedEntry& entry) { return entry.uid == uid; });
}

}  // namespace podqos::core
