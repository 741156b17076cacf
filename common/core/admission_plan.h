#pragma once

#include <optional>
#include <string>

#include "common/core/admission.h"
#include "common/core/event_plan.h"
#include "common/core/record.h"

namespace podqos::core {

/// The first part of an admission: the root, the container's entry and its pod's record, then away
/// with the entries of containers that have ended and are no longer in it. If it fails, the mark
/// stays, and the next transaction makes good what is missing.
/// @param before  the pod's record; nullopt for a new pod
/// @param root  of plan_root() or plan_yield(); may be empty
[[nodiscard]] EventPlan plan_registration(const Admission& admission,
                                          const std::optional<PodRecord>& before, EventPlan root);

/// The second part: removes what an earlier pod of this uid has left, before it is observed what
/// its cgroup uses. From here on a container whose plan fails is removed from its pod again
/// (plan_departure()).
/// @param before  as above
[[nodiscard]] EventPlan plan_clearing(const Admission& admission,
                                      const std::optional<PodRecord>& before);

/// The last part: the pod's values.
/// @param values  nullopt for an adopted pod
/// @param outdated  the container's entry under another bundle, which led to the pod until now
[[nodiscard]] EventPlan plan_completion(std::optional<WritePod> values,
                                        std::optional<IndexEntry> outdated);

/// True if the container is the only one of its pod that lives.
[[nodiscard]] bool is_first(const Admission& admission);

/// The line in the log about an admission.
[[nodiscard]] std::string describe_admission(const Admission& admission);

}  // namespace podqos::core
