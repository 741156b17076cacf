#include "common/core/node_bound.h"

#include "common/core/aggregation.h"

namespace podqos::core {

namespace {

/// Does podqos decide about the pod's requests?
bool is_bound_by_us(const PodRecord& record) {
  return !record.adopted && record.qos_class != QosClass::kBestEffort;
}

}  // namespace

bool exceeds_node_cpu(const PodRecord& record) {
  const auto cpu = find(pod_requests(record.pod), kCpu);
  return is_bound_by_us(record) && cpu && cpu->milli_value() > record.claimed.cpu.value();
}

bool exceeds_node_memory(const PodRecord& record) {
  const auto memory = find(pod_requests(record.pod), kMemory);
  return is_bound_by_us(record) && memory && memory->value() > record.claimed.memory.value();
}

}  // namespace podqos::core
