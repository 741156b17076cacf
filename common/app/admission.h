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

/// A container at the door of its pod.
struct AdmissionRequest {
  core::ContainerFacts facts;
  core::ParsedAnnotations annotations;
  /// cgroupsPath (before the container exists), or the real cgroup of its init.
  std::optional<std::string> placed_at;
  core::Driver driver = core::Driver::kCgroupfs;  ///< of the runtime that runs it
  /// Is placed_at the real cgroup of a process that runs already?
  bool running = false;
  /// Does the engine itself carry out what is decided, with rights that are not this program's?
  bool engine_writes = false;
  core::ContainerState state = core::ContainerState::kPending;
  Pid pid;
  StartTime start_time;
};

/// A container's place in its pod, and what it is to have there.
struct Placement {
  core::ContainerRecord container;   ///< its cgroup is where it should be (adopted: where it is)
  core::CgroupValues missing;        ///< container-level values that the engine left unset
  std::optional<int> oom_score_adj;  ///< unset where the engine's own counts
  bool left_with_engine = false;     ///< it stays where the engine puts it
};

/// The container in its pod: what context it has decided and made.
struct Admission : Placement {
  core::PodRecord record;
  /// Where the container should be, if it runs elsewhere (container.cgroup is where it will stay).
  std::optional<std::string> belongs_to;
  std::optional<core::Origin> origin;  ///< what it is moved from: container.moved says so
  std::string stays;                   ///< why it is not moved, although it should be
};

/// Parses the annotations and looks whether the container concerns podqos at all; nullopt: it does
/// not.
[[nodiscard]] Result<std::optional<AdmissionRequest>> admission_request(
    core::ContainerFacts facts, const core::Settings& settings,
    std::optional<std::string> placed_at);
/// The same with podqos's own annotations read before.
[[nodiscard]] Result<std::optional<AdmissionRequest>> admission_request(
    core::ContainerFacts&& facts, core::PodqosAnnotations&& podqos, const core::Settings& settings,
    std::optional<std::string> placed_at);

/// Joins the container to its pod: record, pod cgroup with its values; the tiers' follow with
/// Transaction::finish(). If the machine refuses a write, the container is taken out again.
/// @return nullopt for a sandbox of whose pod nothing is known: it stays where the engine puts it.
[[nodiscard]] Result<std::optional<Admission>> admit(Transaction& transaction,
                                                     AdmissionRequest request);

}  // namespace podqos::app
