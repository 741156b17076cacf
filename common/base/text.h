#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace podqos {

namespace text_internal {
inline std::string_view piece(std::string_view text) {
  return text;
}
inline std::string piece(std::integral auto number) {
  return std::to_string(number);
}
}  // namespace text_internal

/// Joins strings and integers into one string: cat("pod ", uid, ": ", 3).
template <class... Parts>
[[nodiscard]] std::string cat(const Parts&... parts) {
  std::string out;
  (out.append(text_internal::piece(parts)), ...);
  return out;
}

/// Parses a whole decimal integer, optional '-' in front; nullopt for anything else, overflow
/// included.
[[nodiscard]] std::optional<std::int64_t> parse_int(std::string_view text);

/// How many of the first bytes of `text` are ASCII from 0x20 to 0x7e, quotes and backslashes
/// excepted: what logs and JSON show as it is. Looks at eight bytes at a time.
[[nodiscard]] std::size_t plain_length(std::string_view text);

/// Text made fit for one log line: control bytes and what is no ASCII become \xNN, quotes and
/// backslashes get a backslash, and what exceeds `limit` bytes is cut with "…". For values that
/// strangers wrote.
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit = 128);

}  // namespace podqos
