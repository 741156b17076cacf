#pragma once

#include <string_view>

#include "common/base/error.h"
#include "common/core/cgroups/plan.h"

namespace podqos::cgroup {

/// The error for a write that the kernel refused: "PATH: write "VALUE" to FILE: cause (remedy)",
/// with the code that fits the errno `err`. The remedy is present where podqos knows one.
[[nodiscard]] Error refusal(const core::WriteFile& step, int err);

}  // namespace podqos::cgroup
