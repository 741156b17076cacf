#pragma once

#include <string>

#include "common/app/admission.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "common/core/pod_plan.h"

namespace podqos::app {

/// Reads all limits of a container that runs outside its pod, so that its new cgroup gets the same.
/// They are read from its current cgroup because that holds the engine's values after the runtime's
/// conversions and after every update; config.json has neither.
/// @return an error that names what the container would lose if moved; it must then stay.
[[nodiscard]] Result<core::Origin> origin_of(cgroup::Machine& machine,
                                             const AdmissionRequest& request);

/// Writes the values of a running container: in its current cgroup, or in the pod's after moving it
/// there (placement.onMisplaced).
/// @param actual  the cgroup of its init when it was registered
/// @return kConflict if the container shares its runtime's cgroup, where no limit may be written.
[[nodiscard]] Status apply_container(Transaction& transaction, const Admission& admission,
                                     const std::string& actual);

}  // namespace podqos::app
