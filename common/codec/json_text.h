#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace podqos::codec {

/// Length of the valid UTF-8 sequence that `text` begins with: 1 to 4, 0 when it begins with none
/// (overlong forms and surrogates are invalid).
[[nodiscard]] std::size_t utf8_length(std::string_view text);
[[nodiscard]] bool is_utf8(std::string_view text);

/// Bytes below 0x20, and 0x7f.
[[nodiscard]] constexpr bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

/// `text` as a JSON string with its quotes; bytes from 0x80 up pass as they are, so valid UTF-8
/// stays valid.
[[nodiscard]] std::string quote_json(std::string_view text);

/// Any bytes as valid UTF-8, and back without loss: a byte that belongs to no valid sequence
/// becomes U+10FF00 + byte, and so do the bytes of genuine characters from U+10FF00 up. File names
/// need not be UTF-8, JSON text must be.
[[nodiscard]] std::string utf8_from_bytes(std::string_view bytes);
[[nodiscard]] std::string bytes_from_utf8(std::string_view text);

}  // namespace podqos::codec
