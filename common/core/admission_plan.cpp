#include "common/core/admission_plan.h"

#include <utility>

#include "common/base/text.h"
#include "common/core/pod_plan.h"
#include "common/core/qos.h"

namespace podqos::core {

bool is_first(const Admission& admission) {
  // The container itself is in the record.
  return admission.record.containers.size() == 1;
}

EventPlan plan_admission(const Admission& admission, AdmissionParts parts) {
  const PodRecord& record = admission.record;
  const std::optional<PodRecord>& before = parts.before;
  EventPlan plan{SetMark{}};
  for (EventStep& step : parts.root)
    plan.push_back(std::move(step));
  plan.emplace_back(SaveIndexEntry{index_entry(record, admission.container)});
  plan.emplace_back(SaveRecord{record});
  if (before && !before->adopted && before->cgroup != record.cgroup)
    plan.emplace_back(Execute{plan_removal(before->cgroup)});
  if (parts.values) {
    if (before && is_first(admission)) {
      plan.emplace_back(
          RemoveChildren{.cgroup = record.cgroup, .until = RemoveChildren::Until::kEmpty});
    }
    plan.emplace_back(std::move(*parts.values));
  }
  if (parts.outdated) plan.emplace_back(EraseIndexEntry{std::move(*parts.outdated)});
  return plan;
}

std::string describe_admission(const Admission& admission) {
  const PodRecord& record = admission.record;
  const ContainerRecord& container = admission.container;
  return cat(name_of(record.pod), ": ", format_qos_class(record.qos_class), ", container ",
             printable(container.name), " (", printable(container.id), ") at ", container.cgroup,
             ", cpu ", record.granted.cpu.value(), "m, memory ", record.granted.memory.value(),
             " requested");
}

}  // namespace podqos::core
