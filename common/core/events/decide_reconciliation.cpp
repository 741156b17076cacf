#include "common/core/events/decide_reconciliation.h"

#include <utility>

#include "common/base/text.h"
#include "common/core/events/decide_departure.h"
#include "common/core/pods/counting.h"
#include "common/core/pods/pod_name.h"

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

}  // namespace

Restoration decide_restoration(FoundPodCgroup found) {
  Restoration out;
  const bool moved = found.lives_elsewhere && !found.known;
  if (!found.populated && !moved) {
    if (!found.has_copy && !found.left_over) return out;
    out.removed = true;
    out.change = cat("removed cgroup ", found.path, " of a pod that has ended");
    return out;
  }
  if (found.known || !found.copy || found.copy->pod.uid != found.uid ||
      found.copy->cgroup != found.path) {
    out.warning = cat("cgroup ", found.path, " contains processes that podqos did not place: ",
                      "restart its containers, or move them elsewhere");
    return out;
  }
  out.change = cat("pod ", found.uid, " restored from the copy of its record in its cgroup");
  out.record = std::move(found.copy);
  out.record->released_at.reset();
  return out;
}

void confirm_container(ContainerRecord& container, const Process& init) {
  container.pid = init.pid;
  container.start_time = init.start_time;
  container.pending_since.reset();
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

bool decide_reconciliation(ReconciledPod& pod, ReconcileReport& report, BootSeconds now,
                           const Settings& settings) {
  PodRecord& record = pod.record;
  for (const ContainerRecord& container : pod.ended)
    report.changes.push_back(
        cat("pod ", record.pod.uid, ": container ", printable(container.id), " has ended"));
  if (!record.containers.empty() || (!record.kubelets_own && pod.populated)) {
    record.released_at.reset();
    ++report.pods;
    report.containers += static_cast<std::int64_t>(record.containers.size());
    for (const std::string& misplaced : pod.misplaced)
      report.warnings.push_back(cat(name_of(record), ": ", misplaced));
    // The values of those with containers are written now.
    record.due.reset();
    if (!record.containers.empty()) return true;
    report.warnings.push_back(
        cat("cgroup ", record.cgroup, " of pod ", record.pod.uid,
            " contains processes but its containers have ended: stop the processes, then run "
            "podqosctl reconcile"));
    // They may be ending: the next event or round looks again.
    record.due = retry_at(now, settings);
    return true;
  }
  if (!record.released_at) {
    ++report.released;
    report.changes.push_back(cat("pod ", record.pod.uid, " released"));
    report.events.push_back(event_of(EventKind::kReleased, record));
    report.events.back().text = "released by a reconciliation, as its end was not reported";
    record.released_at = now;
  }
  return false;
}

}  // namespace podqos::core
