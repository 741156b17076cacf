#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/codec/oci_config.h"
#include "common/core/pods/request.h"

namespace podqos::codec {

/// Replaces the bytes [begin, end) of the input by `text`.
struct Splice {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string text;
  friend bool operator==(const Splice&, const Splice&) = default;
};

/// The podqos hooks to register if they are missing.
struct HookRegistration {
  std::string path;               ///< absolute path of podqos-hook
  std::vector<std::string> args;  ///< between argv[0] and the stage, e.g. {"--config", "/x.json"}
};

/// The splices that apply `edit`, record it (kEditRecord) and register the hooks, in ascending
/// order and not overlapping. All other bytes stay as they are; planning again on the result yields
/// no splice.
/// @return kInvalidArgument if a new string is not valid in a config.json.
[[nodiscard]] Result<std::vector<Splice>> plan_splices(
    const OciConfig& config, const core::ConfigEdit& edit,
    const std::optional<HookRegistration>& hooks);

/// The text of `config` with the splices of plan_splices().
[[nodiscard]] Result<std::string> edit_config(const OciConfig& config, const core::ConfigEdit& edit,
                                              const std::optional<HookRegistration>& hooks);

/// Applies splices; kInvalidArgument if they overlap, are not in ascending order, or are out of
/// range.
[[nodiscard]] Result<std::string> apply_splices(std::string_view text,
                                                const std::vector<Splice>& splices);

/// A config.json as it was before podqos edited it; nullopt if podqos has not.
///
/// Bundles are used again, possibly with other annotations: what podqos filled in for an earlier
/// container must not count as set by the engine. Each edit is recorded in the config.json itself
/// (kEditRecord), since records in the state directory end with the container. A value that
/// differs from what podqos wrote was set by another program: it stays, as the hooks do. A record
/// longer than any that podqos writes is removed without being applied.
[[nodiscard]] std::optional<std::string> former_config(std::string_view config);

}  // namespace podqos::codec
