#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/codec/oci_config.h"
#include "common/core/container_facts.h"

namespace podqos::codec {

/// Replace [begin, end) of the input by `text`.
struct Splice {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string text;
  friend bool operator==(const Splice&, const Splice&) = default;
};

/// The podqos hooks to append where they are missing.
struct HookRegistration {
  std::string path;               ///< absolute path of podqos-hook
  std::vector<std::string> args;  ///< between argv[0] and the stage, e.g. {"--config", "/x.json"}
};

/// The hook as it stands in config.json, one JSON object. Stage: "createRuntime" or "poststop".
[[nodiscard]] std::string hook_literal(const HookRegistration& hooks, std::string_view stage);

/// The splices, in ascending order and not overlapping, that carry out `edit` and append the hooks.
/// Only bytes of changed values and inserted members differ; a second run on the result yields no
/// splice.
[[nodiscard]] Result<std::vector<Splice>> plan_splices(
    std::string_view text, const OciConfig& config, const core::ConfigEdit& edit,
    const std::optional<HookRegistration>& hooks);

/// Applies splices; kInvalidArgument if they overlap, are out of order or out of range.
[[nodiscard]] Result<std::string> apply_splices(std::string_view text,
                                                const std::vector<Splice>& splices);

}  // namespace podqos::codec
