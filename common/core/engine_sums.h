#pragma once

#include "common/core/container_facts.h"
#include "common/core/pod.h"

namespace podqos::core {

/// What an engine says of a pod as a whole. It differs from spec.resources: it gives the pod's
/// request and class and may bound the pod's cgroup, but is never a value of one of its containers.
struct EngineSums {
  Resources resources;
  /// The engine bounds its pod by the limits itself (podman pod create --memory): they hold
  /// whatever the containers have. false: they are sums over the containers that have a limit
  /// (CRI), and bound the pod only as long as each known container has one.
  bool enforced = false;
  friend bool operator==(const EngineSums&, const EngineSums&) = default;
};

/// The pod with what the sums say of it in place of its own resources: for its class, its request
/// and the values of its cgroup.
[[nodiscard]] Pod with_sums(Pod pod, const EngineSums& sums);

/// The overhead that an engine tells as it tells a container's resources: exact to a millicpu.
/// @note pkg/kubelet/kuberuntime convertOverheadToLinuxResources: request and limit are equal.
[[nodiscard]] ResourceList overhead_of(const EngineResources& told);

}  // namespace podqos::core
