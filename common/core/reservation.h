#pragma once

#include <optional>
#include <string>

#include "common/base/units.h"
#include "common/core/container_facts.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

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

/// What of a pod's claim is granted if the node has room: nothing to a BestEffort pod, as a kubelet
/// does not count requests that only overhead can give it; with qosReserved, memory only as far as
/// limits back it.
[[nodiscard]] TierSum countable(const PodRecord& record, TierSum claimed, const Settings& settings);

/// The part of a capacity (millicpu or bytes) that one pod may claim: maxPodClaim percent.
[[nodiscard]] std::int64_t claimable(std::int64_t capacity, const Settings& settings);

/// Warning for the node's operator that not all requests of a pod count, with cause and remedy.
/// nullopt if they all do, for adopted, released and BestEffort pods, where the node has no room
/// for them but `admission` of the resource is "off", and where the limits of containers that are
/// still to come may back the rest.
[[nodiscard]] std::optional<std::string> describe_uncounted(const PodRecord& record,
                                                            const Settings& settings);

}  // namespace podqos::core
