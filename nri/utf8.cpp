#include "nri/utf8.h"

#include <algorithm>
#include <array>

namespace podqos::nri {

namespace {

/// A well-formed UTF-8 sequence (Unicode, table 3-7): the range of the second byte excludes
/// overlong forms, surrogates, and values above U+10FFFF.
struct Form {
  unsigned char first_low, first_high, second_low, second_high;
  std::size_t size;
};
constexpr auto kForms = std::to_array<Form>({
    {0x00, 0x7f, 0x00, 0x00, 1},
    {0xc2, 0xdf, 0x80, 0xbf, 2},
    {0xe0, 0xe0, 0xa0, 0xbf, 3},
    {0xe1, 0xec, 0x80, 0xbf, 3},
    {0xed, 0xed, 0x80, 0x9f, 3},
    {0xee, 0xef, 0x80, 0xbf, 3},
    {0xf0, 0xf0, 0x90, 0xbf, 4},
    {0xf1, 0xf3, 0x80, 0xbf, 4},
    {0xf4, 0xf4, 0x80, 0x8f, 4},
});

/// Whether a byte is within a range.
bool is_between(char byte, unsigned char low, unsigned char high) {
  const auto value = static_cast<unsigned char>(byte);
  return value >= low && value <= high;
}

/// Bytes of the character at the front of `text`; 0 if it does not start with one.
std::size_t character_size(std::string_view text) {
  for (const Form& form : kForms) {
    if (!is_between(text[0], form.first_low, form.first_high)) continue;
    if (form.size == 1) return 1;
    if (text.size() < form.size || !is_between(text[1], form.second_low, form.second_high))
      return 0;
    const std::string_view rest = text.substr(2, form.size - 2);
    return std::ranges::all_of(rest, [](char byte) { return is_between(byte, 0x80, 0xbf); })
               ? form.size
               : 0;
  }
  return 0;
}

}  // namespace

std::string valid_utf8(std::string_view text, std::size_t limit) {
  std::string out;
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    if (out.size() + std::max<std::size_t>(size, 1) > limit) break;
    if (size == 0) out += '?';
    out += text.substr(0, size);
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  return out;
}

}  // namespace podqos::nri
