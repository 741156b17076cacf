#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/pods/apply_resize.h"
#include "common/core/pods/request.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// Determines what of a pod's requests counts, whatever other pods request: `capped_request`, the
/// requests up to maxPodClaim of the allocatable resources (capacity without reserves), and
/// `counted_request`, which is the same but for memory with qosReserved or memoryReservationPolicy,
/// which counts only as far as limits back it. All requests of a kubelet's pod count, since its
/// kubelet has admitted it, and none of a BestEffort pod, as a kubelet does not count requests that
/// only overhead can give it.
void count_requests(PodRecord& record, const Settings& settings, const NodeCapacity& capacity);

/// Sum of the memory limits that a CRI engine enforces on the pod's containers. Only this much of
/// the pod's memory request is reserved, since under such an engine the pod's author writes the
/// annotations that claim it.
/// @return nullopt if the whole request counts: a container was made by the node's operator
///         (Podman, Docker, a plain runtime), or a kubelet has placed the pod
[[nodiscard]] std::optional<Bytes> backed_memory(const PodRecord& record);

/// ContainerRecord::backed_memory of a new container. The sandbox also backs the pod's overhead,
/// which the node's operator sets (RuntimeClass) and no container's limit covers.
[[nodiscard]] std::optional<Bytes> backing_of(const ContainerFacts& facts,
                                              const EngineAnnotations& engine);

/// "cpu 1, memory 64Mi requested", and what of it counts if that is not all.
[[nodiscard]] std::string describe_requests(const PodRecord& record);

/// Warning for the node's operator that not all requests of a pod count, with cause and remedy.
/// nullopt if they all do, for a kubelet's, released and BestEffort pods, where the node is too
/// small for them but `admission` of the resource is "off", and where the limits of containers that
/// are still to come may back the rest.
[[nodiscard]] std::optional<std::string> describe_uncounted(const PodRecord& record,
                                                            const Settings& settings);

/// Warning that a pod whose containers became known one after another requests something, which
/// does not count: its first container requested nothing. nullopt if that is not so.
[[nodiscard]] std::optional<std::string> describe_late_requests(const PodRecord& record);

/// Takes the CPU requests of a kubelet's pods from their cgroups: a kubelet that resizes a pod
/// writes its shares or weight, and a runtime with NRI before 0.10 tells plugins of containers
/// only, wrapper and hooks of nothing. Where its containers together request what the cgroup has,
/// the pod requests that; else, as with pod-level resources, the least that gives the shares or
/// weight, by the formula that the weights of the other pods tell. The share of a new cgroup tells
/// nothing by itself. BestEffort pods request nothing.
/// @param held  by uid, what pods' cgroups hold; those that are not there stay as they are
/// @param formula  of the node's runtimes, which counts if no pod tells the kubelet's
/// @return uids of the pods that request something else now
/// @note KEP-1287; pkg/kubelet/cm/helpers_linux.go ResourceConfigForPod
[[nodiscard]] std::vector<std::string> follow_kubelet(
    PodRecords& records, const std::map<std::string, HeldResources>& held, WeightFormula formula);

}  // namespace podqos::core
