#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/core/claims.h"
#include "common/core/container_config.h"
#include "common/core/container_facts.h"
#include "common/core/container_memory.h"
#include "common/core/driver.h"
#include "common/core/identity.h"
#include "common/core/layout.h"
#include "common/core/pod_claim.h"
#include "common/core/pod_plan.h"
#include "common/core/policy.h"
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

/// The state of pod and node that an admission is decided from.
struct AdmissionSnapshot {
  const Identity& identity;
  const PodClaim& claim;
  const std::optional<PodRecord>& before;    ///< the pod's record; nullopt for a new pod
  const std::optional<PodRecord>& existing;  ///< the same without containers that have ended
  TierSums others;                           ///< sums_beside() of `before`
  const NodeCapacity& capacity;
  const Result<std::string>& root;  ///< root of podqos's own pods, or why there is none
};

/// Where a running container can be moved from, or why it cannot be moved.
struct Relocation {
  std::optional<Origin> origin;
  std::string stays;  ///< why it cannot be moved; empty if it can, or need not
};

/// The result of an admission: the pod's record with the container, and what the container needs.
struct Admission {
  ContainerRecord container;  ///< cgroup: the target (for an adopted pod, the current cgroup)
  std::optional<int> oom_score_adj;  ///< unset if the engine sets it
  bool left_with_engine = false;     ///< stays in the cgroup chosen by the engine
  PodRecord record;
  CgroupValues wanted;   ///< container-level values
  CgroupValues missing;  ///< those that the engine left unset; see fill_in_missing()
  /// The cgroup in the pod, if the container runs outside it. container.cgroup is where it will
  /// remain: the same cgroup if it is moved, otherwise its current one.
  std::optional<std::string> belongs_to;
  Relocation relocation;  ///< origin: the cgroup that it is moved from, if container.moved
  OnMisplaced on_misplaced = OnMisplaced::kRewrite;  ///< of the request
  std::vector<std::string> warnings;                 ///< one sentence each, for the log
};

/// Whether the record is that of this container, which its id and bundle identify.
[[nodiscard]] bool is_same_container(const ContainerRecord& container, const ContainerFacts& facts);

/// A pod's name in messages: "pod 42 (web/front)".
[[nodiscard]] std::string name_of(const Pod& pod);

/// Decides the record of the pod to which a container is admitted, the container not included: its
/// class, resources, whether a kubelet's pod is adopted, and for a new pod its cgroup.
/// @return the errors of merge_claim(); that of `snapshot.root` for a pod of podqos's own
[[nodiscard]] Result<MergedPod> decide_pod(const AdmissionRequest& request,
                                           const AdmissionSnapshot& snapshot,
                                           const Settings& settings);

/// Whether admit_container() asks for a relocation: the container runs outside its pod, and
/// onMisplaced is "move".
[[nodiscard]] bool is_to_be_moved(const AdmissionRequest& request, const PodRecord& pod,
                                  const Settings& settings);

/// Decides what the container becomes in the pod of decide_pod(), and grants the pod its requests.
/// @return `missing` is set by fill_in_missing(). kRefused for a running container outside its pod
///         if onMisplaced is "fail"; the errors of container_leaf(), container_values() and, for a
///         pod of podqos's own, pod_values()
[[nodiscard]] Result<Admission> admit_container(const AdmissionRequest& request,
                                                const AdmissionSnapshot& snapshot, PodRecord pod,
                                                Relocation relocation, const Settings& settings);

/// Sets `missing` from `wanted`, once it is known which files the kernel has in the pod's cgroup.
void fill_in_missing(Admission& admission, const AdmissionRequest& request, const PodClaim& claim,
                     const ContainerMemoryParams& params, const CgroupLayout& layout);

}  // namespace podqos::core
