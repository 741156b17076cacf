#pragma once

#include <span>

namespace podqos::hook {

/// podqos-runtime: places the container that the real runtime is asked to make, then becomes the
/// runtime.
/// @return only on failure: 1 where the container is refused or no runtime is found.
int run_wrapper(std::span<const char* const> args);

}  // namespace podqos::hook
