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
struct Place {
  core::Identity identity = {};
  Result<std::string>
      root;                ///< for podqos's own pods, see core::choose_root(), or why there is none
  std::string named = {};  ///< the pod cgroup that the engine names, if it is below podqos's root
  core::CgroupOrigin origin_of_named = core::CgroupOrigin::kNone;
};

/// @return the errors of core::identify() and of the record store
[[nodiscard]] Result<Place> observe_place(Transaction& transaction,
                                          const core::AdmissionRequest& request);

/// Looks at each container of the pod once.
/// @param request  gets the bundle that is recorded, if its engine reports none
/// @return the errors of the record store
[[nodiscard]] Result<core::AdmissionSnapshot> observe_admission(Transaction& transaction,
                                                                core::AdmissionRequest& request,
                                                                const Place& place);

/// Who made the cgroup that has been decided on for the pod, and whether it exists.
[[nodiscard]] core::CgroupOrigin observe_origin(Transaction& transaction, const Place& place,
                                                const std::string& pod_cgroup);

}  // namespace podqos::app
