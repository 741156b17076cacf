#pragma once

#include <string_view>

#include "common/app/log.h"
#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/settings.h"

namespace podqos::app {

/// createRuntime (and prestart): confirms a container that was placed, or registers one that was
/// not; sees to it that it is where it belongs, as far as placement.onMisplaced allows.
/// @param state  the OCI state from stdin.
/// @param runtime  the process that runs the hook.
/// @return kRefused where the operator wants misplaced containers refused, whatever onError says.
[[nodiscard]] Status create_runtime(const core::Settings& settings, Log& log,
                                    std::string_view state, Pid runtime);

/// poststop: takes the container out of its pod and releases the pod with its last container. A
/// container that is not known, or whose id lives again by now, is left alone.
/// @param caller  the process that runs the hook: a creation that failed ends with its own
/// poststop.
[[nodiscard]] Status poststop(const core::Settings& settings, Log& log, std::string_view state,
                              Pid caller);

}  // namespace podqos::app
