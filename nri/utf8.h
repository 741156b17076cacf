#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace podqos::nri {

/// `text` as UTF-8 for a protobuf string: each byte that belongs to no character becomes '?', and
/// what exceeds `limit` bytes is cut off between two characters.
[[nodiscard]] std::string valid_utf8(std::string_view text, std::size_t limit);

}  // namespace podqos::nri
