#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/app/log.h"
#include "common/base/error.h"
#include "common/codec/oci_edit.h"
#include "common/core/events/event.h"
#include "common/core/settings.h"

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

/// Writes "<program>: <line>\n" to standard error in one write(2), so that lines of concurrent
/// programs do not mix. Control characters in `line` are replaced (app::one_line).
void print_error(std::string_view program, std::string_view line);
/// The same for the error of a container's start or end, which is logged and recorded as an event
/// as well.
/// @param event  with its kind and the error as its text
/// @param context  precedes the text
void report_failure(app::Log& log, std::string_view program, core::Event event,
                    std::string_view context);

/// What a symbolic link says; "" if it cannot be read or exceeds PATH_MAX.
[[nodiscard]] std::string link_text(const std::string& path);

/// The working directory; "" if it cannot be determined.
[[nodiscard]] std::string working_directory();

/// The hooks that run this executable, wherever an upgrade has put its successor.
/// @param config  this program's own --config
[[nodiscard]] codec::HookRegistration own_hooks(const std::optional<std::string>& config);

/// Restricts the process before it parses untrusted input: umask 022, few capabilities, and the
/// syscall allow-list sys::Filter::kHook. Cannot be undone.
/// @param settings  chargeMonitor needs another capability
/// @return the error of dropping capabilities or of installing the filter; the caller must not
///         parse anything then. Without root only the umask and the filter apply.
[[nodiscard]] Status enter_sandbox(const core::Settings& settings);

}  // namespace podqos::hook
