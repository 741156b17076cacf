#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace podqos::codec {

/// What a configuration file says about `runtimes`, whatever else is wrong in it: an unknown field,
/// a value out of range, malformed JSON behind it.
/// @return nullopt: the file certainly leaves the field out. An error where this cannot be decided:
///         the field is malformed or repeated, an unknown field may stand for it, or the text is no
///         JSON before the field has been read to its end.
[[nodiscard]] Result<std::optional<std::vector<std::string>>> salvage_runtimes(
    std::string_view text);

}  // namespace podqos::codec
