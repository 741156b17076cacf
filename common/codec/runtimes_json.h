#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace podqos::codec {

/// Reads `runtimes` from a configuration file that may be invalid otherwise: an unknown field, a
/// value out of range, malformed JSON after it.
/// @return nullopt if the file certainly does not set the field; an error if this cannot be
/// decided: the field is malformed or repeated, an unknown field may be a misspelling of it, or the
/// JSON is malformed before the end of the field.
[[nodiscard]] Result<std::optional<std::vector<std::string>>> salvage_runtimes(
    std::string_view text);

}  // namespace podqos::codec
