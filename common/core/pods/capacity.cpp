#include "common/core/pods/capacity.h"

namespace podqos::core {

MilliCpu reserved_cpu(const Settings& settings) {
  return settings.system_reserved.cpu + settings.kube_reserved.cpu;
}

MilliCpu allocatable_cpu(const Settings& settings, const NodeCapacity& capacity) {
  return rest_of(capacity.cpu, reserved_cpu(settings));
}

Bytes allocatable_memory(const Settings& settings, const NodeCapacity& capacity) {
  return rest_of(capacity.memory, settings.system_reserved.memory + settings.kube_reserved.memory +
                                      capacity.hugepages);
}

}  // namespace podqos::core
