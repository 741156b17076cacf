#pragma once

#include <cstdint>
#include <optional>

#include "common/base/units.h"
#include "common/core/kubernetes/cgroup_values.h"
#include "common/core/kubernetes/pod_resources.h"

// Memory QoS (KEP-2570, feature gate MemoryQoS of Kubernetes 1.36): requested memory is protected
// from reclaim, and a container is throttled before it reaches its limit. cgroup v2 only.
namespace podqos::core {

/// memory.min, memory.low and memory.high of a container; kUnlimitedMemory is "max". Absent: not
/// set, or not known.
struct MemoryQos {
  std::optional<Bytes> min = std::nullopt;   ///< never reclaimed
  std::optional<Bytes> low = std::nullopt;   ///< reclaimed only if nothing else can be
  std::optional<Bytes> high = std::nullopt;  ///< above it processes are throttled and reclaim
  friend bool operator==(const MemoryQos&, const MemoryQos&) = default;
};
constexpr Bytes kUnlimitedMemory{kInt64Max};
/// The values of a new cgroup.
constexpr MemoryQos kNoMemoryQos{.min = Bytes{0}, .low = Bytes{0}, .high = kUnlimitedMemory};

/// Node settings for container_memory_qos().
struct MemoryQosParams {
  bool reserves = false;  ///< memoryReservationPolicy is TieredReservation
  std::optional<std::int64_t> throttling_thousandths = std::nullopt;  ///< memoryThrottlingFactor
  Bytes allocatable = {};  ///< stands for the limit of a container without one; 0: not known
  Bytes page_size{4096};
  /// Whether Memory QoS is on.
  [[nodiscard]] bool enabled() const { return reserves || throttling_thousandths; }
};

/// The values of a container by its own requests and limits, those of the pod disregarded. With
/// TieredReservation a memory request becomes memory.min in a Guaranteed pod and memory.low in any
/// other; else both are 0. If request and limit differ, memory.high is request + (limit - request)
/// * factor in whole pages, where that is above the request; in float64, as in the kubelet. Empty
/// if Memory QoS is off.
/// @note pkg/kubelet/kuberuntime/kuberuntime_container_linux.go
///       generateLinuxContainerResources.
[[nodiscard]] MemoryQos container_memory_qos(QosClass qos_class, const Container& container,
                                             const MemoryQosParams& params);

/// The values as files of cgroup v2.
[[nodiscard]] UnifiedValues unified_values(const MemoryQos& qos);

}  // namespace podqos::core
