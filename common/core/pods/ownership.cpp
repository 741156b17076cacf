#include "common/core/pods/ownership.h"

#include <string>
#include <string_view>

#include "common/base/path.h"
#include "common/base/text.h"

namespace podqos::core {

namespace {

bool shares_sandbox(const PodRecord& record, const Identity& identity) {
  return !identity.sandbox_id.empty() && record.sandbox_id == identity.sandbox_id;
}

bool may_admit_annotated(const PodRecord& record, const Identity& identity) {
  const IdentitySource founder = record.founded_by.value_or(IdentitySource::kAnnotation);
  if (founder == IdentitySource::kAnnotation) return record.sandbox_id == identity.sandbox_id;
  return shares_sandbox(record, identity);
}

/// For uids from the engine or from a kubelet's cgroup, which are the same.
bool may_admit_engines(const PodRecord& record, const Identity& identity) {
  const IdentitySource founder = record.founded_by.value_or(IdentitySource::kEngine);
  if (founder == IdentitySource::kEngine || founder == IdentitySource::kCgroup) return true;
  const bool is_placed_there = identity.placed && identity.placed->pod_path == record.cgroup;
  return is_placed_there || shares_sandbox(record, identity);
}

bool may_admit(const PodRecord& record, const Identity& identity) {
  if (record.founded_by == IdentitySource::kLone) return false;
  switch (identity.source) {
    case IdentitySource::kEngine:
    case IdentitySource::kCgroup: return may_admit_engines(record, identity);
    case IdentitySource::kAnnotation: return may_admit_annotated(record, identity);
    case IdentitySource::kSandbox: return !record.founded_by || shares_sandbox(record, identity);
    case IdentitySource::kLone: return false;
  }
  return false;
}

/// Whether a kubelet has placed the container in another cgroup than that of podqos's own pod.
bool is_placed_elsewhere(const PodRecord& record, const Identity& identity) {
  return identity.placed && !record.adopted && identity.placed->pod_path != record.cgroup;
}

std::string sandbox_text(std::string_view id) {
  return id.empty() ? "no sandbox" : cat("sandbox \"", printable(id), "\"");
}

/// What to change so that both pods have different uids.
std::string_view remedy(const PodRecord& record, const Identity& identity) {
  if (identity.source == IdentitySource::kAnnotation)
    return "give the container a podqos.io/pod-uid of its own";
  if (record.founded_by == IdentitySource::kAnnotation)
    return "stop the containers whose annotation podqos.io/pod-uid claims this uid";
  return "stop the containers with this uid, or start this container with another id";
}

std::string_view uid_source(const Identity& identity) {
  return identity.source == IdentitySource::kAnnotation ? "annotation podqos.io/pod-uid"
                                                        : "the engine's pod uid";
}

}  // namespace

Status check_owner(const PodRecord& record, const Identity& identity) {
  if (record.containers.empty()) return {};
  if (is_placed_elsewhere(record, identity)) {
    return fail(ErrorCode::kConflict,
                cat("the container is in the kubelet's pod cgroup ",
                    printable(identity.placed->pod_path), ", but pod \"", printable(identity.uid),
                    "\" at ", record.cgroup, " was made by podqos: ", remedy(record, identity)));
  }
  if (!may_admit(record, identity)) {
    return fail(ErrorCode::kConflict,
                cat(uid_source(identity), " \"", printable(identity.uid), "\" names a pod of ",
                    sandbox_text(record.sandbox_id), ", but this container belongs to ",
                    sandbox_text(identity.sandbox_id), ": ", remedy(record, identity)));
  }
  const std::string& theirs = record.pod.pod_namespace;
  if (!theirs.empty() && !identity.pod_namespace.empty() && theirs != identity.pod_namespace) {
    return fail(
        ErrorCode::kConflict,
        cat(uid_source(identity), " \"", printable(identity.uid), "\" names a pod of namespace \"",
            printable(theirs), "\", but this container belongs to namespace \"",
            printable(identity.pod_namespace), "\": ", remedy(record, identity)));
  }
  return {};
}

bool is_foreign_cgroup(const std::string& pod_cgroup, const PodCgroupSnapshot& snapshot,
                       const std::optional<PodRecord>& record) {
  if (snapshot.has_copy) return false;
  if (record && record->cgroup == pod_cgroup) return record->adopted;
  return snapshot.exists && !snapshot.untouched;
}

bool must_own_cgroup(const std::optional<PodRecord>& before, const PodRecord& record) {
  return !record.adopted && (!before || before->adopted || before->cgroup != record.cgroup);
}

Status check_pod_cgroup(const PodRecord& record, const PodCgroupSnapshot& snapshot,
                        const AdmissionRequest& request) {
  if (snapshot.has_copy || !snapshot.exists) return {};
  const bool named = request.placed_at && is_below(*request.placed_at, record.cgroup);
  if (named && snapshot.untouched) return {};
  return fail(
      ErrorCode::kConflict,
      cat("cgroup ", record.cgroup,
          " exists but was not created by podqos: stop what runs in it and remove it, or give "
          "the pod another uid"));
}

}  // namespace podqos::core
