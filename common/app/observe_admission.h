#pragma once

#include <string>

#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/core/events/decide_admission.h"
#include "common/core/pods/identity.h"
#include "common/core/pods/request.h"

// What an admission is decided from, read from the records and the machine. Changes neither.
namespace podqos::app {

/// Whose the container is, and where its pod's cgroup may lie.
/// @return without the rest; the errors of core::identify() and of the record store
[[nodiscard]] Result<core::AdmissionSnapshot> observe_place(Transaction& transaction,
                                                            const core::AdmissionRequest& request);

/// The rest. Looks at each container of the pod once.
/// @param request  gets the bundle that is recorded, if its engine reports none
/// @return the errors of the record store
[[nodiscard]] Status observe_pod(Transaction& transaction, core::AdmissionRequest& request,
                                 core::AdmissionSnapshot& snapshot);

/// Who made the cgroup that has been decided on for the pod, and whether it exists.
[[nodiscard]] Result<core::CgroupOrigin> observe_origin(Transaction& transaction,
                                                        const core::AdmissionSnapshot& snapshot,
                                                        const std::string& pod_cgroup);

}  // namespace podqos::app
