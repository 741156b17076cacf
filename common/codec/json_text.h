#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace podqos::codec {

/// Length in bytes of the valid UTF-8 sequence at the start of `text`: 1 to 4, or 0 if there is
/// none (overlong forms and surrogates are invalid).
/// @note RFC 3629, section 4.
[[nodiscard]] std::size_t utf8_length(std::string_view text);
/// Appends a code point that is not a surrogate as UTF-8; RFC 3629, section 3.
void append_utf8(std::string& out, unsigned code);
/// Whether all of `text` is valid UTF-8.
[[nodiscard]] bool is_utf8(std::string_view text);

/// Whether `c` is an ASCII control character: below 0x20, or 0x7f.
[[nodiscard]] constexpr bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

/// `text` as a quoted JSON string. Bytes from 0x80 up are copied, so that valid UTF-8 stays valid.
[[nodiscard]] std::string quote_json(std::string_view text);

}  // namespace podqos::codec
