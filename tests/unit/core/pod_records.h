#pragma once

#include <utility>
#include <vector>

#include "common/core/pods/counted_requests.h"
#include "tests/unit/core/pod_text.h"

namespace podqos::core::pod_text {

/// A Burstable pod on a node that has more than any test asks for.
inline PodRecord record_of(std::vector<Container> containers, bool complete = false) {
  PodRecord record;
  record.pod = pod(std::move(containers));
  record.complete = complete;
  record.qos_class = QosClass::kBurstable;
  record.class_source = ClassSource::kShortForms;
  record.cgroup = "/kubepods/burstable/pod42";
  count_requests(record, {}, {.memory = Bytes{kInt64Max}, .cpu = MilliCpu{kInt64Max}});
  return record;
}

inline Container limited(const char* name, const char* cpu, const char* memory) {
  return container(name, {}, list({{"cpu", cpu}, {"memory", memory}}));
}

}  // namespace podqos::core::pod_text
