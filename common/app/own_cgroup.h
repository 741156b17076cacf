#pragma once

#include <optional>
#include <string>

#include "common/app/admission.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/core/record.h"

namespace podqos::app {

/// The root beneath which the pod cgroup that the engine puts the container into is podqos's own
/// work; "": it is not, and is adopted as any other is. podqos's own is what its record says, what
/// bears a copy of the record, and what a runtime has made because config.json names it: that has
/// the values of a new cgroup still. Below "/kubepods" a pod whose uid the engine names is the
/// kubelet's, unless the record or its copy says otherwise.
/// @param root  of podqos's own pods, or why there can be none
[[nodiscard]] Result<std::string> own_root_for(Transaction& transaction,
                                               const AdmissionRequest& request,
                                               const Result<std::string>& root);

/// May podqos make, or has it made, the cgroup of this pod?
/// @param before  the pod's record so far
/// @return kConflict where a cgroup of this name exists that is not podqos's own, as above.
[[nodiscard]] Status check_own_cgroup(Transaction& transaction, const AdmissionRequest& request,
                                      const std::optional<core::PodRecord>& before,
                                      const core::PodRecord& record);

}  // namespace podqos::app
