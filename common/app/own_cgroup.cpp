#include "common/app/own_cgroup.h"

#include <utility>

#include "common/base/text.h"
#include "common/core/identity.h"
#include "common/core/pod_plan.h"

namespace podqos::app {

namespace {

bool has_copy(Event& event, const std::string& pod_cgroup) {
  const auto copy = event.cgroups().attribute(pod_cgroup, kRecordAttribute);
  return copy && copy->has_value();
}

/// Is the pod cgroup beneath the root one that podqos has not made?
Result<bool> is_foreign(Event& event, const Arrival& arrival, const std::string& own_root) {
  const auto placed = core::placed_in(arrival.placed_at);
  if (!placed || !placed->pod_path.starts_with(cat(own_root, "/"))) return false;
  // Before the record, which is read once more when the container joins its pod.
  if (has_copy(event, placed->pod_path)) return false;
  auto record = event.store().pod(placed->uid);
  if (!record) return fail(std::move(record).error());
  if (*record && (*record)->cgroup == placed->pod_path) return (*record)->adopted;
  if (arrival.annotations.engine.pod_uid && core::is_kubelets_root(own_root)) return true;
  return event.cgroups().exists(placed->pod_path) && !event.is_untouched(placed->pod_path);
}

}  // namespace

Result<std::string> own_root_for(Event& event, const Arrival& arrival,
                                 const Result<std::string>& root) {
  const std::string& in_use = event.tiers().kubepods;
  std::string own_root = in_use.empty() ? root.value_or("") : in_use;
  if (own_root.empty()) return own_root;
  const auto foreign = is_foreign(event, arrival, own_root);
  if (!foreign) return fail(foreign.error());
  return *foreign ? std::string{} : own_root;
}

Status check_own_cgroup(Event& event, const Arrival& arrival,
                        const std::optional<core::PodRecord>& before,
                        const core::PodRecord& record) {
  if (record.adopted || (before && !before->adopted && before->cgroup == record.cgroup)) return {};
  if (!event.cgroups().exists(record.cgroup) || has_copy(event, record.cgroup)) return {};
  const bool named = arrival.placed_at && arrival.placed_at->starts_with(cat(record.cgroup, "/"));
  if (named && event.is_untouched(record.cgroup)) return {};
  return fail(ErrorCode::kConflict,
              cat("cgroup ", record.cgroup,
                  " exists and podqos did not make it: end what runs in it and remove it, or give "
                  "the pod another uid"));
}

}  // namespace podqos::app
