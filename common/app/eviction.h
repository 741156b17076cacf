#pragma once

#include <map>
#include <optional>
#include <string>

#include "common/app/log.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/base/units.h"
#include "common/cgroup/machine.h"
#include "common/core/kubernetes/eviction_order.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::app {

/// A tier that has been under pressure for as long as its threshold allows.
struct PressedTier {
  core::QosClass qos_class = core::QosClass::kBestEffort;
  std::string cgroup;
  std::string measured;  ///< the pressure, for the log
};

/// Watches the tiers that have a threshold (eviction of the configuration), and evicts pods from
/// them; not those that systemd-oomd watches (core::is_watched_by_oomd()).
class Evictor {
 public:
  /// Measures the tiers, and evicts at most one pod. To be called every second or two; an error
  /// leaves the eviction to the next call.
  /// @return the class of the evicted pod
  [[nodiscard]] Result<std::optional<core::QosClass>> check(const core::Settings& settings,
                                                            Log& log, const Timeouts& timeouts);

  /// The first tier whose threshold has been met for its whole time, BestEffort before Burstable;
  /// nullopt also within eviction.interval of the last eviction, in which nothing counts. What the
  /// kernel tells of no pressure (cgroup v1, PSI switched off) is measured by its working set
  /// against the lowest of its limit, its root's and the node's memory.
  /// @param node_memory  the node's capacity
  [[nodiscard]] std::optional<PressedTier> find_pressed(cgroup::Machine& machine,
                                                        const core::NodeState& state,
                                                        const core::Settings& settings,
                                                        Bytes node_memory, BootSeconds now);
  /// Measures the tier anew, after an eviction, or since no pod could be evicted.
  void end_period(const PressedTier& tier) { periods_[tier.cgroup].end(); }

 private:
  std::map<std::string, core::PressurePeriod> periods_;  ///< by the tier's cgroup
  bool finished_ = false;                                ///< what an earlier process may have begun
};

/// Evicts a pod from the tier: kills the containers in its cgroup that are in its record, and logs
/// who, why and what was measured. The engine reports their end as any other. The caller finishes
/// the transaction.
/// @return false if none of podqos's own pods in the tier may be evicted (core::find_victim()), or
///         if another program has just evicted one
[[nodiscard]] Result<bool> evict_from(Transaction& transaction, const PressedTier& tier);

/// Kills what the last eviction has left alive. Part of it, or called when it was interrupted.
[[nodiscard]] Status finish_eviction(Transaction& transaction);

}  // namespace podqos::app
