#include "common/core/record_plan.h"

#include <utility>

namespace podqos::core {

IndexEntry index_entry(const PodRecord& record, const ContainerRecord& container) {
  return {.id = container.id, .bundle = container.bundle, .uid = record.pod.uid};
}

RecordPlan plan_arrival(const PodRecord& record, const ContainerRecord& container) {
  return {SaveIndexEntry{index_entry(record, container)}, SaveRecord{record}};
}

RecordPlan plan_renaming(const PodRecord& record, const ContainerRecord& container,
                         IndexEntry old) {
  RecordPlan plan = plan_arrival(record, container);
  plan.emplace_back(EraseIndexEntry{std::move(old)});
  return plan;
}

RecordPlan plan_restoration(const PodRecord& record) {
  RecordPlan plan;
  for (const ContainerRecord& container : record.containers)
    plan.emplace_back(SaveIndexEntry{index_entry(record, container)});
  plan.emplace_back(SaveRecord{record});
  return plan;
}

RecordPlan plan_erasure(const PodRecord& record) {
  RecordPlan plan{EraseRecord{record.pod.uid}};
  for (const ContainerRecord& container : record.containers)
    plan.emplace_back(EraseIndexEntry{index_entry(record, container)});
  return plan;
}

}  // namespace podqos::core
