#include "common/codec/json_text.h"

#include <algorithm>
#include <cstdint>

#include "common/base/text.h"

namespace podqos::codec {

namespace {

constexpr std::string_view kHex = "0123456789abcdef";
/// The UTF-8 form of U+10FF00..U+10FFFF: F4 8F BC..BF 80..BF.
constexpr std::string_view kCarrierPrefix = "\xf4\x8f";
constexpr unsigned kFirstCarrier = 0xbc;
constexpr std::size_t kCarrierLength = 4;

unsigned byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

/// The common case, in which nothing must be encoded.
bool is_ascii(std::string_view text) {
  text.remove_prefix(plain_length(text));
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// Whether `text` starts with a character from U+10FF00 up.
bool begins_with_carrier(std::string_view text) {
  return utf8_length(text) == kCarrierLength && text.starts_with(kCarrierPrefix) &&
         byte_at(text, 2) >= kFirstCarrier;
}

/// Appends U+10FF00 + byte in UTF-8.
void append_carrier(std::string& out, unsigned byte) {
  out += kCarrierPrefix;
  out += static_cast<char>(kFirstCarrier + (byte >> 6U));
  out += static_cast<char>(0x80U | (byte & 0x3fU));
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const unsigned first = byte_at(text, 0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte_at(text, i) & 0xc0U) != 0x80) return 0;
  }
  // Bounds of the second byte: RFC 3629, section 4.
  const unsigned second = byte_at(text, 1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second > 0x9f;
  const bool beyond = first == 0xf4 && second > 0x8f;
  return overlong || surrogate || beyond ? 0 : length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string quote_json(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  out += '"';
  // Nearly all strings that podqos writes need no escape.
  if (plain_length(text) == text.size()) {
    out += text;
    out += '"';
    return out;
  }
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (is_control(c)) {
      out += "\\u00";
      out += kHex[byte >> 4U];
      out += kHex[byte & 0xfU];
    } else {
      out += c;
    }
  }
  out += '"';
  return out;
}

std::string utf8_from_bytes(std::string_view bytes) {
  if (is_ascii(bytes)) return std::string{bytes};
  std::string out;
  while (!bytes.empty()) {
    const std::size_t length = begins_with_carrier(bytes) ? 0 : utf8_length(bytes);
    if (length == 0) append_carrier(out, byte_at(bytes, 0));
    out += bytes.substr(0, length);
    bytes.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string bytes_from_utf8(std::string_view text) {
  if (is_ascii(text)) return std::string{text};
  std::string out;
  while (!text.empty()) {
    if (begins_with_carrier(text)) {
      out +=
          static_cast<char>((byte_at(text, 2) - kFirstCarrier) << 6U | (byte_at(text, 3) & 0x3fU));
      text.remove_prefix(kCarrierLength);
    } else {
      out += text.front();
      text.remove_prefix(1);
    }
  }
  return out;
}

}  // namespace podqos::codec
