#pragma once

#include <optional>
#include <string>

#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/core/claims.h"
#include "common/core/container_facts.h"
#include "common/core/driver.h"
#include "common/core/pod_plan.h"
#include "common/core/record.h"

namespace podqos::app {

/// A container requesting admission to its pod.
struct AdmissionRequest {
  core::ContainerFacts facts;
  /// podqos's own annotations and those of the engine.
  core::ParsedAnnotations annotations;
  /// cgroupsPath from config.json before the container exists, or the cgroup of its init process.
  /// Absent if config.json has none.
  std::optional<std::string> placed_at;
  core::Driver driver = core::Driver::kCgroupfs;  ///< cgroup driver of its runtime
  /// True if placed_at is the cgroup of a running process.
  bool running = false;
  /// What to do if it runs outside its pod's cgroup: placement.onMisplaced, or kIgnore where the
  /// call is not about placing it.
  core::OnMisplaced on_misplaced = core::OnMisplaced::kRewrite;
  /// True if the engine applies the values with its own privileges (NRI), so that this program's
  /// capabilities do not limit them.
  bool engine_writes = false;
  /// kPending: pid is the process that creates the container; kLive: pid is its init.
  core::ContainerState state = core::ContainerState::kPending;
  Pid pid;
  StartTime start_time;
};

/// The container's cgroup in its pod and the values that it needs there.
struct Placement {
  core::ContainerRecord container;  ///< cgroup: the target (for an adopted pod, the current cgroup)
  core::CgroupValues missing;       ///< container-level values that the engine left unset
  std::optional<int> oom_score_adj;  ///< unset if the engine sets it
  bool left_with_engine = false;     ///< stays in the cgroup chosen by the engine
};

/// The result of admit(): the placement and the updated pod record.
struct Admission : Placement {
  core::PodRecord record;
  /// The cgroup in the pod, if the container runs outside it. container.cgroup is where it will
  /// remain: the same cgroup if it is moved, otherwise its current one.
  std::optional<std::string> belongs_to;
  std::optional<core::Origin> origin;  ///< the cgroup it is moved from, if container.moved
  std::string stays;                   ///< why it cannot be moved; empty if it can
  core::OnMisplaced on_misplaced = core::OnMisplaced::kRewrite;  ///< of the request
};

/// Parses the annotations and checks whether podqos manages the container.
/// @param placed_at  see AdmissionRequest::placed_at
/// @return nullopt if podqos does not manage it; kInvalidArgument for annotations that cannot be
///         parsed.
[[nodiscard]] Result<std::optional<AdmissionRequest>> admission_request(
    core::ContainerFacts facts, const core::Settings& settings,
    std::optional<std::string> placed_at);
/// As above, with podqos's own annotations already parsed.
[[nodiscard]] Result<std::optional<AdmissionRequest>> admission_request(
    core::ContainerFacts&& facts, core::PodqosAnnotations&& podqos, const core::Settings& settings,
    std::optional<std::string> placed_at);

/// Adds the container to its pod: writes the record, and creates the pod's cgroup with its values.
/// Transaction::finish() writes the tiers' values. If the kernel or systemd refuses a write, the
/// container is removed from the record again.
/// @return nullopt for a sandbox whose pod is unknown: it stays where the engine puts it. kConflict
///         if the pod's cgroup or the root is not podqos's; kRefused for a running container
///         outside its pod if placement.onMisplaced is "fail".
[[nodiscard]] Result<std::optional<Admission>> admit(Transaction& transaction,
                                                     AdmissionRequest request);

}  // namespace podqos::app
