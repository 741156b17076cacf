#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace podqos {

namespace text_internal {

/// An integer's digits, for as long as it lives.
class Digits {
 public:
  explicit Digits(std::signed_integral auto number) : Digits(std::int64_t{number}) {}
  explicit Digits(std::unsigned_integral auto number) : Digits(std::uint64_t{number}) {}
  explicit Digits(std::int64_t number);
  explicit Digits(std::uint64_t number);
  [[nodiscard]] explicit operator std::string_view() const { return {text_.data(), size_}; }

 private:
  std::array<char, 20> text_{};  // of 2^64 - 1, or of -2^63 with its sign
  std::size_t size_ = 0;
};

inline std::string_view piece(std::string_view text) {
  return text;
}
inline Digits piece(std::integral auto number) {
  return Digits{number};
}

[[nodiscard]] std::string join(std::initializer_list<std::string_view> pieces);

}  // namespace text_internal

/// Joins strings and integers into one string: cat("pod ", uid, ": ", 3).
template <class... Parts>
[[nodiscard]] std::string cat(const Parts&... parts) {
  return text_internal::join({std::string_view{text_internal::piece(parts)}...});
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
