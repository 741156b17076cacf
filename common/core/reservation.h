#pragma once

#include <optional>
#include <string>

#include "common/base/units.h"
#include "common/core/container_facts.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// The memory limits that a CRI engine enforces on the pod's containers, together: more of the
/// pod's memory request is not kept from the lower tiers, for under such an engine annotations are
/// written by the pod's author. nullopt: the node's operator has made a container of the pod
/// (Podman, Docker, a plain runtime), or its kubelet has (adopted), and all that it requests
/// counts.
/// @param arriving  of a container that is yet to be recorded
[[nodiscard]] std::optional<Bytes> backed_memory(
    const PodRecord& record, const std::optional<Bytes>& arriving = std::nullopt);

/// `ContainerRecord::backed_memory` of a container that an engine tells of.
[[nodiscard]] std::optional<Bytes> backing_of(const ContainerFacts& facts,
                                              const EngineAnnotations& engine);

/// `capacity`, CPU in milli or memory in bytes, as far as one pod may claim it (maxPodClaim).
[[nodiscard]] std::int64_t claimable(std::int64_t capacity, const Settings& settings);

/// Why not all that a pod of podqos's own requests counts, and the remedy, as a sentence for the
/// node's operator; nullopt if all of it does, or would if the node had room.
[[nodiscard]] std::optional<std::string> words_on_uncounted(const PodRecord& record,
                                                            const Settings& settings);

}  // namespace podqos::core
