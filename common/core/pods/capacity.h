#pragma once

#include <cstdint>

#include "common/base/units.h"
#include "common/core/settings.h"

namespace podqos::core {

/// Capacity of the node, from the configuration or measured.
struct NodeCapacity {
  Bytes memory;
  MilliCpu cpu;
  Bytes swap{0};          ///< of the machine; 0 if no setting needs it
  Bytes hugepages{0};     ///< of `memory`, what is preallocated as huge pages
  std::int64_t pids = 0;  ///< processes and threads; 0: not known
  Bytes page_size{4096};  ///< of the kernel
};

/// CPU that is not for pods: systemReserved + kubeReserved.
[[nodiscard]] MilliCpu reserved_cpu(const Settings& settings);
/// CPU for pods: capacity - systemReserved - kubeReserved, at least 0.
[[nodiscard]] MilliCpu allocatable_cpu(const Settings& settings, const NodeCapacity& capacity);
/// Memory for pods: capacity - systemReserved - kubeReserved - huge pages, at least 0. Huge pages
/// are a resource of their own, of which no memory limit takes anything.
/// @note kubernetes pkg/kubelet/nodestatus/setters.go MachineInfo.
[[nodiscard]] Bytes allocatable_memory(const Settings& settings, const NodeCapacity& capacity);

}  // namespace podqos::core
