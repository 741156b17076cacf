#pragma once

#include <string_view>

#include "common/base/error.h"
#include "common/core/plan.h"

namespace podqos::cgroup {

/// The error of a write that the kernel refused: "<path>: write "VALUE" to FILE: cause (remedy)",
/// with the code that fits `err`. The remedy stands where podqos knows one.
[[nodiscard]] Error refusal(const core::WriteFile& step, int err);

}  // namespace podqos::cgroup
