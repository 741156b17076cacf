#pragma once

#include <string_view>

#include "common/app/log.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/settings.h"

namespace podqos::hook {

/// The hook stage createRuntime (and prestart): confirms a container that was placed, or registers
/// one that was not; placement.onMisplaced says what becomes of one outside its pod.
/// @param state  the OCI state from stdin (OCI runtime-spec, runtime.md, State)
/// @param runtime  the process that runs the hook
/// @return kRefused if placement.onMisplaced is "fail" and the container runs outside its pod,
///         regardless of onError; kInvalidArgument for a state without a pid.
[[nodiscard]] Status create_runtime(const core::Settings& settings, app::Log& log,
                                    std::string_view state, Pid runtime,
                                    const app::Timeouts& timeouts);

/// The hook stage poststop: removes the container from its pod and releases the pod with its last
/// container. Ignores an unknown container, and one whose id is in use by a later container. Waits
/// up to 5 s for killed processes.
/// @param caller  the process that runs the hook; after a failed creation it is the creator itself
[[nodiscard]] Status poststop(const core::Settings& settings, app::Log& log, std::string_view state,
                              Pid caller, const app::Timeouts& timeouts);

}  // namespace podqos::hook
