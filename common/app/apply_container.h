#pragma once

#include <string>

#include "common/app/admission.h"
#include "common/app/transaction.h"
#include "common/base/error.h"

namespace podqos::app {

/// Writes the values of a running container: in its current cgroup, or in the pod's after moving it
/// there (placement.onMisplaced).
/// @param actual  the cgroup of its init when it was registered
/// @return kConflict if the container shares its runtime's cgroup, where no limit may be written.
[[nodiscard]] Status apply_container(Transaction& transaction, const Admission& admission,
                                     const std::string& actual);

}  // namespace podqos::app
