#pragma once

#include "common/core/container_facts.h"
#include "common/core/pod.h"

namespace podqos::core {

/// Resources of a whole pod as its engine reports them. Unlike spec.resources they give the pod's
/// request, its class and the limits of its cgroup only, and never a value of a container.
struct EngineSums {
  Resources resources;
  /// True if the engine limits the pod itself (podman pod create --memory): the limits always
  /// apply. False if the limits are sums over the containers that have one (CRI): they apply only
  /// if every known container has a limit.
  bool enforced = false;
  friend bool operator==(const EngineSums&, const EngineSums&) = default;
};

/// The pod with the sums as its pod-level resources, to compute its class, its request and the
/// values of its cgroup.
[[nodiscard]] Pod with_sums(Pod pod, const EngineSums& sums);

/// The pod overhead for the LinuxContainerResources in which CRI passes it. CPU is exact to a
/// millicpu.
/// @note pkg/kubelet/kuberuntime convertOverheadToLinuxResources: request and limit are equal.
[[nodiscard]] ResourceList overhead_of(const EngineResources& engine);

}  // namespace podqos::core
