#pragma once

#include <optional>
#include <string>

#include "common/core/admission.h"
#include "common/core/event_plan.h"
#include "common/core/record.h"

namespace podqos::core {

/// What plan_admission() makes a plan of, beside the decision.
struct AdmissionParts {
  const std::optional<PodRecord>& before;  ///< the pod's record; nullopt for a new pod
  EventPlan root;                          ///< of plan_root() or plan_yield(); may be empty
  std::optional<WritePod> values;          ///< nullopt for an adopted pod
  /// The container's entry under another bundle, which leads to the pod until the new one does.
  std::optional<IndexEntry> outdated;
};

/// True if the container is the only one of its pod that lives.
[[nodiscard]] bool is_first(const Admission& admission);

/// The plan of an admission: the root, the container's entry and its pod's record, then the pod's
/// cgroup, once what an earlier pod of this uid has left there is gone. A container whose plan
/// fails is removed from its pod again (plan_departure()).
[[nodiscard]] EventPlan plan_admission(const Admission& admission, AdmissionParts parts);

/// The line in the log about an admission.
[[nodiscard]] std::string describe_admission(const Admission& admission);

}  // namespace podqos::core
