#pragma once

#include <string>

#include "common/app/admission.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/cgroup/cgroupfs.h"
#include "common/core/pod_plan.h"

namespace podqos::app {

/// All that bounds a container that runs outside its pod, so that its new cgroup can bound it
/// alike: what its cgroup holds now, for that is the engine's wish after the runtime's own
/// conversions and with every update since, which config.json does not know.
/// @return what the container would lose by being moved, which is why it must stay.
[[nodiscard]] Result<core::Origin> origin_of(cgroup::Cgroupfs& cgroups,
                                             const AdmissionRequest& request);

/// Values for a container that runs already: where it is, or in its pod, where it is moved to.
/// @param actual  the cgroup that it ran in when it came
[[nodiscard]] Status apply_container(Transaction& transaction, const Admission& admission,
                                     const std::string& actual);

}  // namespace podqos::app
