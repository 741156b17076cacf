#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/codec/json_tree.h"
#include "common/core/settings.h"

namespace podqos::codec {

constexpr std::size_t kMaxSettingsSize = std::size_t{1} << 20U;

/// Applies one configuration file on top of `base`. Comments (// and /* */) and trailing commas are
/// allowed. The fields and what their values may be stand in settings_table.h.
/// @return kTooLarge beyond kMaxSettingsSize; kInvalidArgument for text that is not one JSON
/// object, for an unknown field, with the known one that is nearest to it, for a repeated field,
/// and for a value that the field does not accept. Each names the position and the field's path
/// ("reserved.system.memory").
[[nodiscard]] Result<core::Settings> merge_settings(core::Settings base, std::string_view text);

/// Settings, and what is wrong with the text that was laid over them.
struct CheckedSettings {
  core::Settings settings;    ///< with all fields of the text that are right
  std::vector<Error> errors;  ///< one for each that is not, in their order
};
/// As merge_settings(), but goes on after an error; of malformed JSON with what precedes it.
[[nodiscard]] CheckedSettings check_settings(core::Settings base, std::string_view text);

/// Reads `runtimes` from a configuration file that may be invalid otherwise: an unknown field, a
/// value out of range, malformed JSON after it.
/// @return nullopt if the file does not set the field; an error if this cannot be decided: the
/// field is malformed or repeated, or an unknown field, or what follows malformed JSON, may be
/// meant as it.
[[nodiscard]] Result<std::optional<std::vector<std::string>>> salvage_runtimes(
    std::string_view text);

/// The settings as one JSON object in the same form, every field present; indented for people.
[[nodiscard]] std::string format_settings(const core::Settings& settings);

/// The fields that differ from the built-in settings, as one compact JSON object of their paths.
[[nodiscard]] std::string format_changed_settings(const core::Settings& settings);
/// The built-in settings with these fields. What another release has written is left out.
[[nodiscard]] core::Settings read_changed_settings(const JsonNode& object);

/// The known name nearest to `name` by edit distance, or else the shortest that `name` is a piece
/// of; "" when there is none.
[[nodiscard]] std::string nearest_name(std::string_view name,
                                       const std::vector<std::string_view>& known);

/// What to say behind "unknown <name>": "; did you mean <prefix><nearest>?", or without one
/// "; expected one of a, b, c".
[[nodiscard]] std::string hint_for(std::string_view name,
                                   const std::vector<std::string_view>& known,
                                   std::string_view prefix = "");

}  // namespace podqos::codec
