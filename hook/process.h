#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/codec/oci_edit.h"
#include "common/core/settings.h"

namespace podqos::hook {

/// Writes "<program>: <line>\n" to standard error in one write(2), so that lines of concurrent
/// programs do not mix. Control characters in `line` are replaced (app::one_line).
void print_error(std::string_view program, std::string_view line);

/// The error of an invalid configuration, with what to do about it.
[[nodiscard]] Error with_remedy(Error error);

/// The working directory; "" if it cannot be determined.
[[nodiscard]] std::string working_directory();

/// The hooks that run this executable, wherever an upgrade has put its successor.
/// @param config  this program's own --config
[[nodiscard]] codec::HookRegistration own_hooks(const std::optional<std::string>& config);

/// Restricts the process before it parses untrusted input: umask 077, few capabilities, and the
/// syscall allow-list sys::Filter::kHook. Cannot be undone.
/// @param settings  chargeMonitor needs another capability
/// @return the error of dropping capabilities or of installing the filter; the caller must not
///         parse anything then. Without root only the umask and the filter apply.
[[nodiscard]] Status enter_sandbox(const core::Settings& settings);

}  // namespace podqos::hook
