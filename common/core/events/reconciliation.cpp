#include "common/core/events/reconciliation.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/core/pods/counting.h"
#include "common/core/pods/whole_pod.h"

namespace podqos::core {

namespace {

/// Whether the engine's list decides about a container: it is being created.
bool is_listed_by(const ContainerRecord& container, const EngineList* list) {
  return list != nullptr && container.state == ContainerState::kPending;
}

/// Decides whether the container lives, and updates its record.
bool update_container(ContainerRecord& container, const ContainerObservation& observation,
                      const EngineList* list) {
  if (observation.init) {
    confirm_container(container, *observation.init);
    return true;
  }
  if (!is_listed_by(container, list)) return observation.lives;
  if (list->ids.contains(container.id)) {
    // The listener is told when it has started, or was removed.
    container.pid = list->listener.pid;
    container.start_time = list->listener.start_time;
    return true;
  }
  return observation.lives && list->listener != Process{container.pid, container.start_time};
}

/// A pod that lives on.
void count(Reconciliation& out, ReconciledPod pod) {
  PodRecord& record = pod.record;
  if (record.containers.empty()) {
    out.report.warnings.push_back(
        cat("cgroup ", record.cgroup, " of pod ", record.pod.uid,
            " contains processes but its containers have ended: stop the processes, then run "
            "podqosctl reconcile"));
  }
  record.released_at.reset();
  for (const std::string& stray : pod.strays)
    out.report.warnings.push_back(cat("pod ", record.pod.uid, ": ", stray));
  for (const ContainerRecord& container : record.containers) {
    if (container.state == ContainerState::kPending)
      out.pending.push_back(pending_entry(record, container));
  }
  add_pod(out.sums, record);
  ++out.report.pods;
  out.report.containers += static_cast<std::int64_t>(record.containers.size());
  std::string uid = record.pod.uid;
  out.living.emplace(std::move(uid), std::move(record));
}

void release(Reconciliation& out, PodRecord record, BootSeconds now) {
  if (!record.released_at) {
    ++out.report.released;
    out.report.changes.push_back(cat("pod ", record.pod.uid, " released"));
    record.released_at = now;
  }
  out.ended.push_back(std::move(record));
}

/// Not for pods that have containers: their values are written now.
bool is_due_again(const Reconciliation& out, const std::string& uid) {
  const auto living = out.living.find(uid);
  if (living != out.living.end()) return living->second.containers.empty();
  return std::ranges::any_of(out.ended,
                             [&](const PodRecord& record) { return record.pod.uid == uid; });
}

}  // namespace

Restoration decide_restoration(FoundPodCgroup found) {
  Restoration out;
  const bool moved = found.lives_elsewhere && !found.known;
  if (!found.populated && !moved) {
    if (!found.has_copy && !found.left_over) return out;
    out.what = Restoration::What::kRemove;
    out.change = cat("removed cgroup ", found.path, " of a pod that has ended");
    return out;
  }
  if (found.known || !found.copy || found.copy->pod.uid != found.uid ||
      found.copy->cgroup != found.path) {
    out.warning = cat("cgroup ", found.path, " contains processes that podqos did not place: ",
                      "restart its containers, or move them elsewhere");
    return out;
  }
  out.what = Restoration::What::kRestore;
  out.change = cat("pod ", found.uid, " restored from the copy of its record in its cgroup");
  out.record = std::move(found.copy);
  out.record->released_at.reset();
  return out;
}

void confirm_container(ContainerRecord& container, const Process& init) {
  container.pid = init.pid;
  container.start_time = init.start_time;
  container.state = ContainerState::kLive;
}

bool needs_init(const ContainerRecord& container, bool lives, const EngineList* list) {
  if (!is_listed_by(container, list)) return !lives;
  return !lives || list->ids.contains(container.id) ||
         list->listener == Process{container.pid, container.start_time};
}

ReconciledPod remove_ended(PodRecord record, std::span<const ContainerObservation> observations,
                           const EngineList* list) {
  ReconciledPod out;
  std::vector<ContainerRecord> living;
  for (std::size_t at = 0; at < record.containers.size(); ++at) {
    ContainerRecord& container = record.containers[at];
    const bool lives = update_container(container, observations[at], list);
    (lives ? living : out.ended).push_back(container);
  }
  // All of them may have run at the same time.
  for (const ContainerRecord& ended : out.ended)
    forget_container(record, ended);
  record.containers = std::move(living);
  out.record = std::move(record);
  return out;
}

Reconciliation reconcile_pods(std::vector<ReconciledPod> pods, ReconcileReport report,
                              const ReconcileSnapshot& snapshot, const Settings& settings) {
  Reconciliation out;
  out.report = std::move(report);
  out.sums = snapshot.unreadable;
  for (ReconciledPod& pod : pods) {
    for (const ContainerRecord& container : pod.ended) {
      out.report.changes.push_back(
          cat("pod ", pod.record.pod.uid, ": container ", printable(container.id), " has ended"));
    }
    const bool lives = !pod.record.containers.empty() || (!pod.record.adopted && pod.populated);
    lives ? count(out, std::move(pod)) : release(out, std::move(pod.record), snapshot.now);
  }
  std::ranges::copy_if(snapshot.retained, std::back_inserter(out.retained),
                       [&](const RetainedEntry& entry) { return is_due_again(out, entry.uid); });
  grant_all(out.living, out.sums, snapshot.cut, settings, snapshot.capacity);
  return out;
}

void grant_all(PodRecords& records, TierSums& sums, std::span<const CutEntry> cut,
               const Settings& settings, const NodeCapacity& capacity) {
  for (auto& [uid, record] : records) {
    if (record.adopted) continue;
    const Grants most = grants_for(record, {}, settings, capacity);
    remove_pod(sums, record);
    record.granted.cpu = std::min(record.granted.cpu, most.granted.cpu);
    record.granted.memory = std::min(record.granted.memory, most.granted.memory);
    add_pod(sums, record);
  }
  const auto grant_again = [&](PodRecord& record) {
    if (record.adopted) return;
    remove_pod(sums, record);
    grant_requests(record, sums, settings, capacity);
    add_pod(sums, record);
  };
  for (const CutEntry& entry : cut) {
    if (const auto record = records.find(entry.uid); record != records.end())
      grant_again(record->second);
  }
  for (auto& [uid, record] : records)
    grant_again(record);
}

}  // namespace podqos::core
