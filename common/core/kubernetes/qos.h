#pragma once

#include <cstdint>
#include <string>

#include "common/base/units.h"
#include "common/core/kubernetes/pod_resources.h"

namespace podqos::core {

/// A class and the reason for it, e.g. "container \"a\" has no memory limit".
struct QosVerdict {
  QosClass qos_class = QosClass::kBestEffort;
  std::string reason;
};

/// QoS class of a pod with API defaults. status.qosClass overrides the spec. If spec.resources is
/// present, even empty, the containers do not count. Only cpu and memory above 0 count.
/// @note pkg/apis/core/v1/helper/qos/qos.go GetPodQOS.
[[nodiscard]] QosVerdict classify(const Pod& pod);

constexpr int kSandboxOomScoreAdj = -998;     ///< set for sandboxes by CRI runtimes
constexpr int kGuaranteedOomScoreAdj = -997;  ///< Guaranteed and node-critical pods
constexpr int kBestEffortOomScoreAdj = 1000;

/// What a Burstable container's score is computed of, in bytes.
struct OomClaim {
  /// The container's memory request; of a sidecar that of the app container with the smallest one,
  /// if it has the lower score: it must not be killed before the containers that depend on it.
  std::int64_t request = 0;
  /// Of the pod-level request beyond those of the containers; may be negative.
  std::int64_t share = 0;
  bool of_least = false;  ///< `request` is that of another container
};
/// @param node_memory  above 0
[[nodiscard]] OomClaim oom_claim(const Pod& pod, const Container& container, Bytes node_memory);

/// oom_score_adj of a container of a pod with API defaults. A Burstable container gets
/// 1000 - 1000 * memory request / node memory, at least 3, and 999 instead of 1000. Scores above
/// the kernel's range, which the kubelet gives for some pod-level requests, become 1000.
/// @param node_memory  capacity of the machine, not what is allocatable
/// @note pkg/kubelet/qos/policy.go GetContainerOOMScoreAdjust.
[[nodiscard]] int oom_score_adj(const Pod& pod, QosClass qos_class, const Container& container,
                                Bytes node_memory);

}  // namespace podqos::core
