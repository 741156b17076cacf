#pragma once

#include <cstdint>

#include "common/base/units.h"
#include "common/core/pod.h"

namespace podqos::core {

constexpr int kSandboxOomScoreAdj = -998;
constexpr int kGuaranteedOomScoreAdj = -997;
constexpr int kBestEffortOomScoreAdj = 1000;

/// oom_score_adj of a container of a defaulted pod; `node_memory` is the machine's capacity.
/// Where upstream leaves the kernel's range [-1000, 1000] the value is held at its ends.
/// @note pkg/kubelet/qos/policy.go GetContainerOOMScoreAdjust.
[[nodiscard]] int oom_score_adj(const Pod& pod, QosClass qos_class, const Container& container,
                                Bytes node_memory);

}  // namespace podqos::core
