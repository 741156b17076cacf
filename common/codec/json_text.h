#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace podqos::codec {

/// Length in bytes of the valid UTF-8 sequence at the start of `text`: 1 to 4, or 0 if there is
/// none (overlong forms and surrogates are invalid).
/// @note RFC 3629, section 4.
[[nodiscard]] std::size_t utf8_length(std::string_view text);
/// Whether all of `text` is valid UTF-8.
[[nodiscard]] bool is_utf8(std::string_view text);

/// Whether `c` is an ASCII control character: below 0x20, or 0x7f.
[[nodiscard]] constexpr bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

/// `text` as a quoted JSON string. Bytes from 0x80 up are copied, so that valid UTF-8 stays valid.
[[nodiscard]] std::string quote_json(std::string_view text);

/// Encodes arbitrary bytes as valid UTF-8, and decodes them without loss: a byte that is not part
/// of a valid sequence becomes U+10FF00 + byte, and so do the bytes of real characters from
/// U+10FF00 up. Needed since file names need not be UTF-8 but JSON text must be.
[[nodiscard]] std::string utf8_from_bytes(std::string_view bytes);
/// The inverse of utf8_from_bytes().
[[nodiscard]] std::string bytes_from_utf8(std::string_view text);

}  // namespace podqos::codec
