#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/core/cgroups/layout.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/pods/claim.h"
#include "common/core/pods/identity.h"
#include "common/core/pods/merge.h"
#include "common/core/pods/request.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// The state of pod and node that an admission is decided from.
struct AdmissionSnapshot {
  Identity identity = {};
  Result<std::string> root = {};  ///< root of podqos's own pods, or why there is none
  std::string named = {};  ///< the pod cgroup that the engine names, if it is below podqos's root
  CgroupOrigin origin_of_named = CgroupOrigin::kNone;
  PodClaim claim = {};
  std::optional<PodRecord> before = std::nullopt;    ///< the pod's record; nullopt for a new pod
  std::optional<PodRecord> existing = std::nullopt;  ///< the same without ended containers
  /// The container if it runs already, although it is requested to be created.
  std::optional<ContainerRecord> running = std::nullopt;
  NodeCapacity capacity = {};
  CgroupLayout layout = {};  ///< without huge pages
  bool has_cgroup = true;    ///< false: that of the pod has been seen to be absent
};

/// The result of an admission: the pod's record with the container, and what the container needs.
struct Admission {
  ContainerRecord container;         ///< cgroup: the target, or where it runs already
  std::optional<int> oom_score_adj;  ///< unset if the engine sets it
  bool left_with_engine = false;     ///< stays in the cgroup chosen by the engine
  PodRecord record;
  CgroupValues wanted;   ///< container-level values; `unified` complete after fill_in_missing()
  CgroupValues missing;  ///< those that the engine left unset; see fill_in_missing()
  std::optional<std::string> belongs_to;  ///< the cgroup in the pod, if it runs outside the pod
  OnMisplaced on_misplaced = OnMisplaced::kRewrite;  ///< of the request
  std::vector<std::string> warnings;                 ///< one sentence each, for the log
};

/// What became of a container, for its event: its class, what it requests, and where it is.
[[nodiscard]] std::string describe_admission(const Admission& admission);

/// Matches a container that is recorded without its bundle and reported with it, or the other way
/// round, if it is the only one of its id, and sets the bundle in both.
void reconcile_bundle(PodRecord& record, ContainerFacts& facts);

/// Decides what the pod of a container is without it: its class, resources and cgroup, and whether
/// that is a kubelet's. check_pod_cgroup() comes next.
/// @return nullopt for the sandbox of an unknown pod, which stays where the engine puts it;
///         kConflict for a container that runs already, and from merge_claim(); the error of
///         `snapshot.root` for a pod of podqos's own
[[nodiscard]] Result<std::optional<MergedPod>> decide_pod(const AdmissionRequest& request,
                                                          const AdmissionSnapshot& snapshot,
                                                          const Settings& settings);
/// Decides the container's place and values in that pod, and what of its requests counts.
/// check_node_fit() comes next.
/// @return `missing` is set by fill_in_missing(). kRefused for a running container outside its pod
///         if onMisplaced is "fail"; the errors of check_realtime(), container_leaf(),
///         container_values() and pod_values()
[[nodiscard]] Result<Admission> decide_admission(const AdmissionRequest& request,
                                                 const AdmissionSnapshot& snapshot, MergedPod pod,
                                                 const Settings& settings);

/// Sets `missing` from `wanted`, once it is known which files the kernel has in the pod's cgroup.
void fill_in_missing(Admission& admission, const AdmissionRequest& request, const PodClaim& claim,
                     const ContainerMemoryParams& params, const CgroupLayout& layout);

/// The init process of a container that has started.
struct Init {
  Process process;
  std::string cgroup;         ///< its current one
  Pid child_of_monitor = {};  ///< the process that runs the hook; under NRI the init itself
};

/// Makes a placed container live, and notes where it really is and the bundle that its engine
/// reports.
/// @param index  of the container in the record
/// @param bundle  canonical; empty if the engine reports none
/// @return what to warn of if the container is not where it was placed
[[nodiscard]] std::optional<std::string> decide_confirmation(PodRecord& record, std::size_t index,
                                                             const Init& init,
                                                             const std::string& bundle);

}  // namespace podqos::core
