#include "common/base/text.h"

#include <bit>
#include <charconv>
#include <cstring>

namespace podqos {

namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr std::size_t kBitsPerByte = 8;
constexpr std::uint64_t kOnes = 0x0101'0101'0101'0101U;
constexpr std::uint64_t kHighBits = kOnes << 7U;

constexpr bool is_plain(unsigned char byte) {
  return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

/// Sets the high bit of each byte that is not plain. Exact up to the first one; a borrow or carry
/// may set bits above it.
constexpr std::uint64_t other_bytes(std::uint64_t word) {
  const std::uint64_t below_space = word - (kOnes * 0x20U);
  const std::uint64_t quote = (word ^ (kOnes * '"')) - kOnes;
  const std::uint64_t backslash = (word ^ (kOnes * '\\')) - kOnes;
  const std::uint64_t del = word + kOnes;
  // Each is set for other bytes only if those have the high bit, and are not plain themselves.
  return (word | below_space | quote | backslash | del) & kHighBits;
}

}  // namespace

namespace text_internal {

Digits::Digits(std::int64_t number) {
  size_ = static_cast<std::size_t>(
      std::to_chars(text_.data(), text_.data() + text_.size(), number).ptr - text_.data());
}

Digits::Digits(std::uint64_t number) {
  size_ = static_cast<std::size_t>(
      std::to_chars(text_.data(), text_.data() + text_.size(), number).ptr - text_.data());
}

std::string join(std::initializer_list<std::string_view> pieces) {
  std::size_t size = 0;
  for (const std::string_view piece : pieces)
    size += piece.size();
  std::string out;
  out.reserve(size);
  for (const std::string_view piece : pieces)
    out += piece;
  return out;
}

}  // namespace text_internal

std::string_view read_until(std::string_view& rest, char separator) {
  const std::size_t at = rest.find(separator);
  const std::string_view taken = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  return taken;
}

std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::string_view part = read_until(text, separator);
    if (!part.empty()) parts.emplace_back(part);
  }
  return parts;
}

bool has_word(std::string_view text, std::string_view word) {
  while (!text.empty()) {
    if (read_until(text, ' ') == word) return true;
  }
  return false;
}

std::string_view without_newline(std::string_view text) {
  while (text.ends_with('\n'))
    text.remove_suffix(1);
  return text;
}

std::size_t plain_length(std::string_view text) {
  std::size_t at = 0;
  // A borrow propagates upwards, so the first byte in memory must be the lowest of the word.
  if constexpr (std::endian::native == std::endian::little) {
    for (; text.size() - at >= kWord; at += kWord) {
      std::uint64_t word = 0;
      std::memcpy(&word, text.data() + at, kWord);
      const std::uint64_t others = other_bytes(word);
      if (others != 0)
        return at + static_cast<std::size_t>(std::countr_zero(others)) / kBitsPerByte;
    }
  }
  while (at < text.size() && is_plain(static_cast<unsigned char>(text[at])))
    ++at;
  return at;
}

std::optional<std::int64_t> parse_int(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::string printable(std::string_view text, std::size_t limit) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const std::string_view shown = text.substr(0, limit);
  std::string out{shown.substr(0, plain_length(shown))};
  for (const char c : shown.substr(out.size())) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (!is_plain(byte)) {
      out += "\\x";
      out += kHex[byte >> 4U];
      out += kHex[byte & 0xfU];
    } else {
      out += c;
    }
  }
  if (text.size() > limit) out += "…";
  return out;
}

std::string format_amount(Bytes bytes) {
  constexpr std::array kUnits = {"", "Ki", "Mi", "Gi", "Ti"};
  constexpr std::int64_t kStep = 1024;
  std::int64_t amount = bytes.value();
  if (amount < 0) return "unlimited";
  std::size_t unit = 0;
  for (; amount != 0 && amount % kStep == 0 && unit + 1 < kUnits.size(); ++unit)
    amount /= kStep;
  return cat(amount, kUnits.at(unit));
}

std::string format_amount(MilliCpu cpu) {
  constexpr std::int64_t kMilli = 1000;
  if (cpu.value() % kMilli == 0) return cat(cpu.value() / kMilli);
  return cat(cpu.value(), "m");
}

}  // namespace podqos
