#pragma once

#include <optional>
#include <string>

#include "common/base/units.h"
#include "common/core/claims.h"
#include "common/core/container_facts.h"
#include "common/core/driver.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// A container requesting admission to its pod.
struct AdmissionRequest {
  ContainerFacts facts;
  /// podqos's own annotations and those of the engine.
  ParsedAnnotations annotations;
  /// cgroupsPath from config.json before the container exists, or the cgroup of its init process.
  /// Absent if config.json has none.
  std::optional<std::string> placed_at;
  Driver driver = Driver::kCgroupfs;  ///< cgroup driver of its runtime
  /// True if placed_at is the cgroup of a running process.
  bool running = false;
  /// True if its engine undoes it on an error although it runs (the sandbox of NRI's
  /// RunPodSandbox), so that it is refused like one that does not run yet.
  bool undone_if_refused = false;
  /// What to do if it runs outside its pod's cgroup: placement.onMisplaced, or kIgnore where the
  /// call is not about placing it.
  OnMisplaced on_misplaced = OnMisplaced::kRewrite;
  /// True if the engine applies the values with its own privileges (NRI), so that this program's
  /// capabilities do not limit them.
  bool engine_writes = false;
  /// kPending: pid is the process that creates the container; kLive: pid is its init.
  ContainerState state = ContainerState::kPending;
  Pid pid;
  StartTime start_time;
};

}  // namespace podqos::core
