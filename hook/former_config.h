#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace podqos::hook {

/// A config.json as it was before podqos edited it; nullopt if podqos has not.
///
/// Bundles are used again, possibly with other annotations: what podqos filled in for an earlier
/// container must not count as set by the engine. Each edit is recorded in the config.json itself
/// (codec::kEditRecord), since records in the state directory end with the container. A value that
/// differs from what podqos wrote was set by another program: it stays, as the hooks do. A record
/// longer than any that podqos writes is removed without being applied.
[[nodiscard]] std::optional<std::string> former_config(std::string_view config);

}  // namespace podqos::hook
