#include "common/core/admission_plan.h"

#include <algorithm>
#include <utility>

#include "common/base/text.h"
#include "common/core/pod_plan.h"
#include "common/core/qos.h"

namespace podqos::core {

EventPlan plan_registration(const Admission& admission, const std::optional<PodRecord>& before,
                            EventPlan root) {
  const PodRecord& record = admission.record;
  EventPlan plan{SetMark{}};
  for (EventStep& step : root)
    plan.push_back(std::move(step));
  plan.emplace_back(SaveIndexEntry{index_entry(record, admission.container)});
  plan.emplace_back(SaveRecord{record});
  if (!before) return plan;
  for (const ContainerRecord& container : before->containers) {
    const bool stays = std::ranges::any_of(record.containers, [&](const ContainerRecord& each) {
      return each.id == container.id && each.bundle == container.bundle;
    });
    if (!stays) plan.emplace_back(EraseIndexEntry{index_entry(*before, container)});
  }
  return plan;
}

EventPlan plan_clearing(const Admission& admission, const std::optional<PodRecord>& before) {
  const PodRecord& record = admission.record;
  EventPlan plan;
  if (!before) return plan;
  if (!before->adopted && before->cgroup != record.cgroup)
    plan.emplace_back(Execute{plan_removal(before->cgroup)});
  if (!record.adopted && is_first(admission)) {
    plan.emplace_back(
        RemoveChildren{.cgroup = record.cgroup, .until = RemoveChildren::Until::kEmpty});
  }
  return plan;
}

EventPlan plan_completion(std::optional<WritePod> values, std::optional<IndexEntry> outdated) {
  EventPlan plan;
  if (values) plan.emplace_back(std::move(*values));
  if (outdated) plan.emplace_back(EraseIndexEntry{std::move(*outdated)});
  return plan;
}

bool is_first(const Admission& admission) {
  // The container itself is in the record.
  return admission.record.containers.size() == 1;
}

std::string describe_admission(const Admission& admission) {
  const PodRecord& record = admission.record;
  const ContainerRecord& container = admission.container;
  return cat(name_of(record.pod), ": ", format_qos_class(record.qos_class), ", container ",
             printable(container.name), " (", printable(container.id), ") at ", container.cgroup,
             ", cpu ", format_amount(record.granted.cpu), ", memory ",
             format_amount(record.granted.memory), " requested");
}

}  // namespace podqos::core
