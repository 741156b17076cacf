#pragma once

#include <span>

namespace podqos::hook {

/// Runs podqos-hook: `[--config FILE] createRuntime|prestart|poststop|precreate`. The first three
/// stages read the OCI state from standard input (runtime-spec, config.md, POSIX-platform hooks);
/// precreate reads config.json and writes the edited one to standard output (Podman).
/// @param args  argv without argv[0]
/// @return exit status: 0 done or nothing to do, 1 the container is refused, 2 usage error.
int run_hook(std::span<const char* const> args);

}  // namespace podqos::hook
