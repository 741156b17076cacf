#pragma once

#include <optional>

#include "common/base/units.h"
#include "common/core/container_facts.h"
#include "common/core/pod.h"

namespace podqos::core {

/// Derives requests and limits from linux.resources: the CPU request from shares, limits from
/// quota, period and memory limit, the memory request from the reservation (Podman). Requests are
/// capped at the limits.
/// @param believe_oom_score  the engine serves a kubelet: without a reservation, the memory request
///                           is the smallest that gives `oom_score_adj`
/// @param node_memory        capacity that the kubelet computed the score with
/// @note The inverse of pkg/kubelet/qos/policy.go; its resolution is a thousandth of the node's
///       memory.
[[nodiscard]] Resources infer_resources(const EngineResources& engine,
                                        std::optional<std::int64_t> oom_score_adj,
                                        bool believe_oom_score, Bytes node_memory);

}  // namespace podqos::core
