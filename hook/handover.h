#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/app/place.h"
#include "common/base/error.h"
#include "common/codec/oci_edit.h"
#include "common/core/settings.h"

namespace podqos::hook {

constexpr std::size_t kMaxHandover = std::size_t{256} << 10U;

/// What the sandboxed child tells its parent: a placement, nothing to do, or an error.
using Handover = Result<std::optional<app::ConfigChange>>;

/// Bytes of a handover, and back. The reader trusts nothing: lengths, counts and codes are checked.
[[nodiscard]] std::string format_handover(const Handover& handover);
[[nodiscard]] Result<Handover> parse_handover(std::string_view bytes);

/// Does the placement contain nothing but what podqos may write into a config.json? The child has
/// parsed input from strangers; if it was broken into, it must not be able to add a hook or move
/// the container out of podqos's root.
/// See check_splices; and a path that is written must lie beneath podqos's root.
[[nodiscard]] Status check_placement(const app::ConfigChange& placement, std::string_view config,
                                     const core::Settings& settings,
                                     const codec::HookRegistration& hooks);

}  // namespace podqos::hook
