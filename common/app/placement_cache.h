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

/// A container that is about to be made, in a pod whose record need not change for it now.
struct CachedPlacement : Placement {
  std::string pod_uid;
  bool adopted = false;
};

/// For a program that an engine waits for again and again: what a container that is about to be
/// made is to be asked for, told without the lock and without a write where neither is needed. That
/// is where its sandbox lives in a pod that is known, and its coming changes no value of pod or
/// tiers, so that nothing is lost if it is counted only when it has started.
class PlacementCache {
 public:
  PlacementCache();

  /// parse_podqos_annotations(), at once for what has come before: containers of a pod come with
  /// the same, and pods of one kind with the same but for the uid.
  [[nodiscard]] Result<core::PodqosAnnotations> read(const core::Annotations& annotations);

  /// @return what admit() would come to; nullopt: only that can tell, or say why not.
  [[nodiscard]] std::optional<CachedPlacement> find(const core::Settings& settings,
                                                    const AdmissionRequest& request);

  /// Does the end of this container change nothing? Most containers of a node may be none of
  /// podqos's. false: only container_ended() can tell.
  [[nodiscard]] bool is_foreign(const core::Settings& settings, const std::string& id);

 private:
  using Clock = std::chrono::steady_clock;
  /// What hardly ever changes, and takes long to look at.
  struct Machine {
    core::CgroupLayout layout;
    core::NodeCapacity capacity;
    // What of it the settings say.
    std::optional<Bytes> pinned_memory;
    std::optional<MilliCpu> pinned_cpu;
    std::optional<core::SwapBehavior> swap_behavior;
    Clock::time_point until;
    std::optional<core::MemoryFiles> memory_files;  ///< once a pod's cgroup was looked at
  };
  struct Known {
    store::Stamp stamp;
    std::optional<core::PodRecord> record;
    bool has_room = false;  ///< for one more container
  };
  [[nodiscard]] bool read_machine(const core::Settings& settings);
  [[nodiscard]] bool read_state(const core::Settings& settings);
  [[nodiscard]] core::MemoryFiles memory_files(const std::string& pod_cgroup);
  /// nullptr: not known, or not to be read. Valid until the next call.
  [[nodiscard]] const Known* known(const std::string& uid);

  [[nodiscard]] bool owns_host();

  std::optional<bool> owns_host_;  ///< which a process does or does not
  std::optional<Machine> machine_;
  std::optional<store::UnlockedState> state_;                       ///< as old as machine_
  std::string state_dir_;                                           ///< where it is
  RecentByName<Known> records_;                                     ///< by uid
  RecentByName<Known> long_records_;                                ///< the same
  Recent<core::Annotations, core::PodqosAnnotations> annotations_;  ///< by kind, without a uid
};

}  // namespace podqos::app
