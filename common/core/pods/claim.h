#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/pods/identity.h"
#include "common/core/pods/request.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// The resources that one container's admission request claims for its pod.
struct PodClaim {
  Pod pod;  ///< the whole spec, or the containers known from this request; with API defaults
  /// Name of the container in its pod: as given by engine or annotation; else of the only container
  /// of a complete pod; else, in a pod of the engine, of the only container with the limits that
  /// the engine has set; else the container's id. Sandboxes always have their id.
  std::string container;
  bool complete = false;  ///< the pod's values are final: a whole spec, or pod-level resources
  std::optional<EngineSums> sums;  ///< resources of the whole pod as its engine reports them
  ClassSource source = ClassSource::kInference;
  std::optional<QosClass> declared_class;  ///< podqos.io/qos-class
  std::optional<QosClass> engine_class;    ///< tier of the pod cgroup that a kubelet has chosen
  bool stated = false;                     ///< annotations state the container's resources
  /// A whole spec, and no limit that the engine gives this container is another than the spec's.
  bool runs_as_specified = false;
  bool refused = false;               ///< annotations of its resources exceed the engine's limits
  bool known = false;                 ///< false: no resources are known (a sandbox alone)
  std::vector<std::string> warnings;  ///< refused annotations, one sentence each
};

/// Builds the claim from the strongest source: podqos.io/pod, podqos.io/requests and limits, the
/// engine's pod sums, or inference from linux.resources. With trustAnnotations engine-checked,
/// annotations that exceed the engine's limits of the container are refused with a warning. A limit
/// that the engine sets for its pod limits every claim. A kubelet's pod (`identity.placed`)
/// requests what the kubelet says, whatever the annotations.
[[nodiscard]] PodClaim claim_for(const Identity& identity, const AdmissionRequest& request,
                                 const Settings& settings, Bytes node_memory);

/// Whether a complete claim differs from the pod's known spec. For podqos.io/requests and limits
/// only the pod-level limits are compared: each request names its own container only, and pod-level
/// requests default to the sum of the known containers.
[[nodiscard]] bool describes_otherwise(const PodClaim& claim, const Pod& known);

/// Derives requests and limits from linux.resources: the CPU request from shares, limits from
/// quota, period and memory limit, the memory request from the reservation (Podman). Requests are
/// capped at the limits.
/// @param kubelets_score  oom_score_adj where the engine serves a kubelet: without a reservation,
///                        the memory request is the smallest that gives it
/// @param node_memory     capacity that the kubelet computed the score with
/// @note The inverse of pkg/kubelet/qos/policy.go; its resolution is a thousandth of the node's
///       memory.
[[nodiscard]] Resources infer_resources(const EngineResources& engine,
                                        std::optional<std::int64_t> kubelets_score = std::nullopt,
                                        Bytes node_memory = {});

}  // namespace podqos::core
