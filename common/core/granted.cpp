#include "common/core/granted.h"

#include "common/base/units.h"

namespace podqos::core {

namespace {

/// Does podqos decide about the pod's requests? Those of BestEffort pods never count.
bool is_granted_by_us(const PodRecord& record) {
  return !record.adopted && record.qos_class != QosClass::kBestEffort;
}

/// Each request for memory in the proportion in which the pod's has been granted.
void scale_memory(ResourceList& requests, const PodRecord& record) {
  const auto found = requests.find(kMemory);
  if (found == requests.end() || record.granted.memory >= record.claimed.memory) return;
  found->second = Quantity::from_units(
      mul_div(found->second.value(), record.granted.memory.value(), record.claimed.memory.value()));
}

}  // namespace

bool lacks_cpu(const PodRecord& record) {
  return is_granted_by_us(record) && record.granted.cpu < record.claimed.cpu;
}

bool lacks_memory(const PodRecord& record) {
  return is_granted_by_us(record) && record.granted.memory < record.claimed.memory;
}

Pod granted_pod(const PodRecord& record) {
  Pod pod = record.pod;
  pod.is_static = false;
  pod.priority.reset();
  if (pod.resources) scale_memory(pod.resources->requests, record);
  for (auto* list : {&pod.containers, &pod.init_containers}) {
    for (Container& container : *list)
      scale_memory(container.resources.requests, record);
  }
  return pod;
}

}  // namespace podqos::core
