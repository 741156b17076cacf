#pragma once

#include <span>

namespace podqos::hook {

/// Runs podqos-hook: `[--config FILE] createRuntime|prestart|poststop|precreate`. The first three
/// stages read the OCI state from standard input (runtime-spec, config.md, POSIX-platform hooks);
/// precreate reads config.json and writes the edited one to standard output (Podman).
/// @param args  argv without argv[0]
/// @return exit status: 0 done or nothing to do, 1 the container is refused, 2 usage error.
int run_hook(std::span<const char* const> args);

/// Runs podqos-runtime: places the container that the runtime is about to create, then executes the
/// runtime in this process with the remaining arguments, so that pid, signals and descriptors stay.
/// @param args  argv without argv[0]
/// @return on failure only: 1 if the container is refused, or the runtime is not found or cannot be
///         executed.
int run_wrapper(std::span<const char* const> args);

}  // namespace podqos::hook
