#include "common/core/node_bound.h"

#include "common/core/whole_pod.h"

namespace podqos::core {

namespace {

/// Whether podqos limits the pod's requests.
bool is_bound_by_us(const PodRecord& record) {
  return !record.adopted && record.qos_class != QosClass::kBestEffort;
}

bool exceeds_cpu(const PodRecord& record, const ResourceList& requests) {
  const auto cpu = find(requests, kCpu);
  return cpu && cpu->milli_value() > record.claimed.cpu.value();
}

bool exceeds_memory(const PodRecord& record, const ResourceList& requests) {
  const auto memory = find(requests, kMemory);
  return memory && memory->value() > record.claimed.memory.value();
}

}  // namespace

bool exceeds_node_cpu(const PodRecord& record) {
  return is_bound_by_us(record) && exceeds_cpu(record, requests_of(record));
}

bool exceeds_node(const PodRecord& record) {
  if (!is_bound_by_us(record)) return false;
  const ResourceList requests = requests_of(record);
  return exceeds_cpu(record, requests) || exceeds_memory(record, requests);
}

}  // namespace podqos::core
