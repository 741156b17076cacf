#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/units.h"

namespace podqos {

namespace text_internal {

// piece() converts an argument of cat(), join() concatenates the results.
inline std::string_view piece(std::string_view text) {
  return text;
}
inline std::string piece(std::integral auto number) {
  return std::to_string(number);
}

[[nodiscard]] std::string join(std::initializer_list<std::string_view> pieces);

}  // namespace text_internal

/// Concatenates strings and integers: cat("pod ", uid, ": ", 3).
template <class... Parts>
[[nodiscard]] std::string cat(const Parts&... parts) {
  return text_internal::join({std::string_view{text_internal::piece(parts)}...});
}

/// Parses `text` as a decimal integer with an optional '-'. Returns nullopt for an empty string,
/// for any other character and on overflow.
[[nodiscard]] std::optional<std::int64_t> parse_int(std::string_view text);

[[nodiscard]] constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
/// A letter of ASCII or a digit.
[[nodiscard]] constexpr bool is_alphanumeric(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// A hexadecimal digit as engines write ids, in lower case.
[[nodiscard]] constexpr bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f');
}

/// Returns the text before the next `separator`, or all of it if there is none, and removes both
/// from `rest`.
std::string_view read_until(std::string_view& rest, char separator);
/// The parts between separators that are not empty.
[[nodiscard]] std::vector<std::string> parts_of(std::string_view text, char separator);
/// The place of a word among those between spaces, counted from 0; nullopt if it is not among them.
[[nodiscard]] std::optional<std::size_t> place_of_word(std::string_view text,
                                                       std::string_view word);
/// The word at a place; "" beyond the last.
[[nodiscard]] std::string_view word_at(std::string_view text, std::size_t place);
/// Whether one of the words between spaces is `word`.
[[nodiscard]] inline bool has_word(std::string_view text, std::string_view word) {
  return place_of_word(text, word).has_value();
}
/// Without white space at both ends.
[[nodiscard]] std::string_view trimmed(std::string_view text);
/// Without the newlines at its end.
[[nodiscard]] std::string_view without_newline(std::string_view text);

/// Length of the prefix of `text` that logs and JSON need not escape: ASCII from 0x20 to 0x7e
/// without '"' and '\'.
[[nodiscard]] std::size_t plain_length(std::string_view text);

/// Escapes text from an untrusted source for one log line: control and non-ASCII bytes become
/// \xNN, '"' and '\' get a backslash. Input beyond `limit` bytes is replaced by "…".
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit = 128);

/// 64-bit FNV-1a.
[[nodiscard]] std::uint64_t fnv1a(std::string_view text);
/// The same as 16 hex digits.
[[nodiscard]] std::string fnv1a_hex(std::string_view text);

/// An exact amount: "64Mi", "1536Ki", "1000000"; "unlimited" if negative.
[[nodiscard]] std::string exact_amount(Bytes bytes);
/// A number of bytes in the largest binary unit, with at most one decimal and "~" in front if
/// digits were cut: "3Gi", "1.5Gi", "~1.1Gi", "64Mi", "0", "1023".
[[nodiscard]] std::string rounded_amount(Bytes bytes);
/// An amount in a message: exact, and one that is long to read rounded as well:
/// "64Mi", "~22.2Gi (23307364Ki)"; "unlimited" if negative.
[[nodiscard]] std::string format_amount(Bytes bytes);
/// "2", "250m".
[[nodiscard]] std::string format_amount(MilliCpu cpu);
/// "50ms"; "1500us" if it is not a whole number of milliseconds.
[[nodiscard]] std::string format_amount(Micros time);

}  // namespace podqos
