#pragma once

#include <span>

namespace podqos::hook {

/// podqos-hook: `[--config FILE] createRuntime|prestart|poststop|precreate`.
/// @return exit status: 0 done or nothing to do, 1 refused, 2 usage.
int run_hook(std::span<const char* const> args);

}  // namespace podqos::hook
