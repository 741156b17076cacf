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

}  // namespace podqos::codec
