#pragma once

#include <optional>
#include <string>

#include "common/app/admission.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/core/record.h"

namespace podqos::app {

/// The root below which podqos created the pod cgroup that the engine names; "" if podqos did not
/// create it, and adopts it instead. A pod cgroup is podqos's own if the record says so, if it has
/// a copy of the record, or if a runtime created it because config.json names it; in the last case
/// it still has a new cgroup's values. Below "/kubepods" a pod whose uid the engine reports is the
/// kubelet's, unless the record or its copy says otherwise.
/// @param root  the root of podqos's own pods, or why there is none
[[nodiscard]] Result<std::string> own_root_for(Transaction& transaction,
                                               const AdmissionRequest& request,
                                               const Result<std::string>& root);

/// Checks that podqos created the pod's cgroup, or may create it.
/// @param before  the pod's record before this transaction
/// @return kConflict if the cgroup exists and is not podqos's own, as defined above.
[[nodiscard]] Status check_own_cgroup(Transaction& transaction, const AdmissionRequest& request,
                                      const std::optional<core::PodRecord>& before,
                                      const core::PodRecord& record);

}  // namespace podqos::app
