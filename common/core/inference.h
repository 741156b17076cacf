#pragma once

#include <optional>

#include "common/base/units.h"
#include "common/core/container_facts.h"
#include "common/core/pod.h"

namespace podqos::core {

/// Requests and limits read back from what an engine wrote into linux.resources: cpu request from
/// shares, limits from quota/period and memory limit, memory request from the reservation (Podman)
/// or, where `believe_oom_score` (a kubelet stands behind the engine), from oom_score_adj: the
/// smallest request that gives that score.
/// @note The inverse of pkg/kubelet/qos/policy.go; its resolution is a thousandth of the node's
/// memory.
[[nodiscard]] Resources infer_resources(const EngineResources& engine,
                                        std::optional<std::int64_t> oom_score_adj,
                                        bool believe_oom_score, Bytes node_memory);

}  // namespace podqos::core
