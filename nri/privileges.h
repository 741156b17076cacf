#pragma once

#include "common/base/error.h"

namespace podqos::nri {

/// Gives up all capabilities but those that placing and reconciling need, and installs the syscall
/// allow-list: before anything is read from a runtime. No way back, so signals, systemd's socket
/// and everything else that the list does not have are opened before.
[[nodiscard]] Status enter_sandbox();

}  // namespace podqos::nri
