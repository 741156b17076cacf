#pragma once

#include <span>

namespace podqos::hook {

/// Runs podqos-runtime: places the container that the runtime is about to create, then executes the
/// runtime in this process with the remaining arguments, so that pid, signals and descriptors stay.
/// @param args  argv without argv[0]
/// @return on failure only: 1 if the container is refused, or the runtime is not found or cannot be
///         executed.
int run_wrapper(std::span<const char* const> args);

}  // namespace podqos::hook
