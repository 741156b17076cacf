#include "common/core/event_plan.h"

#include <utility>

namespace podqos::core {

IndexEntry index_entry(const PodRecord& record, const ContainerRecord& container) {
  return {.id = container.id, .bundle = container.bundle, .uid = record.pod.uid};
}

EventPlan plan_renaming(const PodRecord& record, const ContainerRecord& container, IndexEntry old) {
  return {SaveIndexEntry{index_entry(record, container)}, SaveRecord{record},
          EraseIndexEntry{std::move(old)}};
}

EventPlan plan_restoration(const PodRecord& record) {
  EventPlan plan;
  for (const ContainerRecord& container : record.containers)
    plan.emplace_back(SaveIndexEntry{index_entry(record, container)});
  plan.emplace_back(SaveRecord{record});
  return plan;
}

EventPlan plan_erasure(const PodRecord& record) {
  EventPlan plan{EraseRecord{record.pod.uid}};
  for (const ContainerRecord& container : record.containers)
    plan.emplace_back(EraseIndexEntry{index_entry(record, container)});
  return plan;
}

}  // namespace podqos::core
