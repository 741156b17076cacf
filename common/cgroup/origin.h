#pragma once

#include "common/base/error.h"
#include "common/cgroup/machine.h"
#include "common/core/admission.h"
#include "common/core/pod_plan.h"

namespace podqos::cgroup {

/// Reads all limits of a container that runs outside its pod, so that its new cgroup gets the same.
/// They are read from its current cgroup because that holds the engine's values after the runtime's
/// conversions and after every update; config.json has neither.
/// @return an error that names what the container would lose if moved; it must then stay.
[[nodiscard]] Result<core::Origin> origin_of(Machine& machine,
                                             const core::AdmissionRequest& request);

}  // namespace podqos::cgroup
