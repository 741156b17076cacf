#pragma once

#include "common/base/error.h"

namespace podqos::nri {

/// Drops all capabilities but those required to place containers and to reconcile, and installs the
/// syscall allow-list sys::Filter::kPlugin. To be called before anything is read from a runtime.
/// Cannot be undone: signals, sockets and everything else that the list forbids are opened before.
/// @return the error of dropping capabilities or of installing the filter.
[[nodiscard]] Status enter_sandbox();

}  // namespace podqos::nri
