#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/core/events/event.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// Container ids.
using Ids = std::set<std::string, std::less<>>;

/// All containers of an engine, as the engine reports them.
struct EngineList {
  Ids ids;           ///< sandboxes and containers, including those not started yet
  Process listener;  ///< received the list, and places containers
  /// Processes of those that run, looked up since: a node has thousands of them.
  std::map<std::string, Process, std::less<>> running = {};
  /// Whether the container runs by what was looked up.
  [[nodiscard]] bool runs(const ContainerRecord& container) const {
    const auto found = running.find(container.id);
    return found != running.end() && found->second == Process{container.pid, container.start_time};
  }
};

/// What a reconciliation found and changed.
struct ReconcileReport {
  std::int64_t pods = 0;             ///< live pods, a kubelet's included
  std::int64_t containers = 0;       ///< live containers
  std::int64_t released = 0;         ///< pods whose end podqos had missed
  std::int64_t repaired = 0;         ///< pods whose lost record was restored
  std::vector<std::string> changes;  ///< one sentence per change
  /// Pods of which a value or record could not be written, and records that cannot be read, as of a
  /// newer version, which are left unchanged.
  std::vector<std::string> failed;
  std::vector<std::string> warnings;  ///< what the operator should check
  std::vector<Event> events;          ///< of all of them those that the journal has
};

/// A pod cgroup below podqos's root whose pod has no record there.
struct FoundPodCgroup {
  std::string path;
  std::string uid;                ///< by its name
  bool known = false;             ///< the pod has a record, with another cgroup
  bool populated = false;         ///< it holds a process other than the pod's monitor
  bool lives_elsewhere = false;   ///< a container of the copy runs, but in another cgroup
  bool has_copy = false;          ///< it has a copy of a record: podqos created it
  bool left_over = false;         ///< in podqos's tree, bare or only in some hierarchies
  std::optional<PodRecord> copy;  ///< nullopt if it cannot be parsed
};

/// What becomes of a pod cgroup without a record. It is left where others have made it, or podqos
/// does not know what runs in it.
struct Restoration {
  bool removed = false;                ///< its pod has ended: remove it
  std::optional<PodRecord> record;     ///< of a pod that has lost its record, to be used
  std::optional<std::string> change;   ///< for the report
  std::optional<std::string> warning;  ///< for the report
};

/// Decides what becomes of a pod cgroup without a record. Only what is left over, or has a copy, is
/// removed, and a pod is restored only from a copy that is about this cgroup.
[[nodiscard]] Restoration decide_restoration(FoundPodCgroup found);

/// Makes a container live with this init process.
void confirm_container(ContainerRecord& container, const Process& init);

/// What was observed of a recorded container.
struct ContainerObservation {
  /// The process in its record lives: its init, or while it is pending, the process that creates
  /// it.
  bool lives = false;
  /// The init process found in its cgroup; observed only where needs_init().
  std::optional<Process> init = std::nullopt;
};

/// Whether the process in the record does not decide if the container lives, so that its cgroup
/// must be searched for its init process.
/// @param list  the engine's list, if there is one
[[nodiscard]] bool needs_init(const ContainerRecord& container, bool lives, const EngineList* list);

/// A pod's record, and what was observed of the pod.
struct ReconciledPod {
  PodRecord record;
  std::vector<ContainerRecord> ended;  ///< containers removed from the record
  /// A process other than the monitor's is in its cgroup; observed only for podqos's own pods
  /// without a living container.
  bool populated = false;
  std::vector<std::string> misplaced;  ///< living containers that another program has moved
};

/// Removes ended containers from a pod's record, and confirms those that were found running. A
/// container that was placed for an engine and is not confirmed yet lives if the engine's list has
/// it; if not, and the listener placed it, it lives only if it runs.
/// @param observations  in the order of the record's containers
[[nodiscard]] ReconciledPod remove_ended(PodRecord record,
                                         std::span<const ContainerObservation> observations,
                                         const EngineList* list);

/// Decides whether a pod lives on. It does while a container of it does, or a process is in the
/// cgroup that podqos made for it; where only that is so, it is due.
/// @param pod  whose record becomes that of a living or released pod
/// @param report  what was found before, which is continued
/// @return false if it has ended: decide_departure() decides about its cgroup
[[nodiscard]] bool decide_reconciliation(ReconciledPod& pod, ReconcileReport& report,
                                         BootSeconds now, const Settings& settings);

}  // namespace podqos::core
