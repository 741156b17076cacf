#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "common/app/admission.h"
#include "common/base/error.h"
#include "common/base/recent.h"
#include "common/base/units.h"
#include "common/core/claims.h"
#include "common/core/container_facts.h"
#include "common/core/layout.h"
#include "common/core/policy.h"
#include "common/core/record.h"
#include "common/core/settings.h"
#include "common/store/stamp.h"
#include "common/store/unlocked_state.h"

namespace podqos::app {

/// Answers placement requests of a long-running engine (NRI) from memory, without lock or write. It
/// can do so if the container's sandbox is live in a recorded pod and the container changes no
/// value of pod or tiers; the container is then counted only once it has started.
class PlacementCache {
 public:
  PlacementCache();

  /// As codec::parse_podqos_annotations(), but cached: containers of a pod have the same
  /// annotations, and pods of one workload have the same except for the uid.
  [[nodiscard]] Result<core::PodqosAnnotations> read(const core::Annotations& annotations);

  /// Decides the admission as admit() does.
  /// @return nullopt if it changes a value of pod or tiers, or gives a warning or an error: admit()
  ///         must then decide again under the lock.
  [[nodiscard]] std::optional<core::Admission> find(const core::Settings& settings,
                                                    const AdmissionRequest& request);

  /// True if the container is known not to be podqos's, so that its end changes nothing. False if
  /// only container_ended() can decide.
  [[nodiscard]] bool is_foreign(const core::Settings& settings, const std::string& id);

 private:
  using Clock = std::chrono::steady_clock;
  /// What rarely changes and is expensive to read; read again every few seconds.
  struct Machine {
    core::CgroupLayout layout;
    core::NodeCapacity capacity;
    // The settings that the values above depend on.
    std::optional<Bytes> pinned_memory;
    std::optional<MilliCpu> pinned_cpu;
    std::optional<core::SwapBehavior> swap_behavior;
    Clock::time_point until;
    std::optional<core::MemoryFiles> memory_files;  ///< set once a pod's cgroup was read
  };
  /// A cached record, valid while the stamp of its file is unchanged.
  struct Known {
    store::Stamp stamp;
    std::optional<core::PodRecord> record;
    bool has_room = false;  ///< for one more container, see core::check_record_size()
  };
  /// Fills machine_; false if this process does not own the host's cgroups, or on an error.
  [[nodiscard]] bool read_machine(const core::Settings& settings);
  /// Opens state_ if it is missing or outdated; false if there is no state, or a transaction was
  /// interrupted.
  [[nodiscard]] bool read_state(const core::Settings& settings);
  [[nodiscard]] core::MemoryFiles memory_files(const std::string& pod_cgroup);
  /// The pod's cached record; nullptr if it is unknown or unreadable. Valid until the next call.
  [[nodiscard]] const Known* known(const std::string& uid);

  [[nodiscard]] bool owns_host();

  std::optional<bool> owns_host_;  ///< does not change during a process's lifetime
  std::optional<Machine> machine_;
  std::optional<store::UnlockedState> state_;  ///< discarded together with machine_
  std::string state_dir_;                      ///< the directory of state_
  RecentByName<Known> records_;                ///< by uid
  RecentByName<Known> long_records_;           ///< by uid; records above the usual size
  Recent<core::Annotations, core::PodqosAnnotations>
      annotations_;  ///< by podqos.io annotations without the uid
};

}  // namespace podqos::app
