#include "common/app/own_cgroup.h"

#include <utility>

#include "common/base/text.h"
#include "common/core/identity.h"
#include "common/core/pod_plan.h"

namespace podqos::app {

namespace {

/// A copy of a record proves that podqos created the cgroup.
bool has_copy(Transaction& transaction, const std::string& pod_cgroup) {
  const auto copy = transaction.machine().attribute(pod_cgroup, kRecordAttribute);
  return copy && copy->has_value();
}

/// True if the engine names a pod cgroup below podqos's root that podqos did not create.
Result<bool> is_foreign(Transaction& transaction, const AdmissionRequest& request,
                        const std::string& own_root) {
  const auto placed = core::placed_in(request.placed_at);
  if (!placed || !placed->pod_path.starts_with(cat(own_root, "/"))) return false;
  // Checked before the record, which admit() reads anyway.
  if (has_copy(transaction, placed->pod_path)) return false;
  auto record = transaction.store().pod(placed->uid);
  if (!record) return fail(std::move(record).error());
  if (*record && (*record)->cgroup == placed->pod_path) return (*record)->adopted;
  if (request.annotations.engine.pod_uid && core::is_kubelets_root(own_root)) return true;
  return transaction.machine().exists(placed->pod_path) &&
         !transaction.is_untouched(placed->pod_path);
}

}  // namespace

Result<std::string> own_root_for(Transaction& transaction, const AdmissionRequest& request,
                                 const Result<std::string>& root) {
  const std::string& in_use = transaction.tiers().kubepods;
  std::string own_root = in_use.empty() ? root.value_or("") : in_use;
  if (own_root.empty()) return own_root;
  const auto foreign = is_foreign(transaction, request, own_root);
  if (!foreign) return fail(foreign.error());
  return *foreign ? std::string{} : own_root;
}

Status check_own_cgroup(Transaction& transaction, const AdmissionRequest& request,
                        const std::optional<core::PodRecord>& before,
                        const core::PodRecord& record) {
  if (record.adopted || (before && !before->adopted && before->cgroup == record.cgroup)) return {};
  if (!transaction.machine().exists(record.cgroup) || has_copy(transaction, record.cgroup))
    return {};
  const bool named = request.placed_at && request.placed_at->starts_with(cat(record.cgroup, "/"));
  if (named && transaction.is_untouched(record.cgroup)) return {};
  return fail(
      ErrorCode::kConflict,
      cat("cgroup ", record.cgroup,
          " exists but was not created by podqos: stop what runs in it and remove it, or give "
          "the pod another uid"));
}

}  // namespace podqos::app
