#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace podqos::nri {

/// `text` as valid UTF-8 for a protobuf string: each byte that is not part of a character becomes
/// '?', and text beyond `limit` bytes is cut off between two characters.
[[nodiscard]] std::string valid_utf8(std::string_view text, std::size_t limit);

}  // namespace podqos::nri
