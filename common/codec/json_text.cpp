#include "common/codec/json_text.h"

#include "common/base/text.h"

namespace podqos::codec {

namespace {

constexpr std::string_view kHex = "0123456789abcdef";

unsigned byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  const unsigned first = byte_at(text, 0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  unsigned code = first & (0x7fU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte_at(text, i) & 0xc0U) != 0x80) return 0;
    code = code << 6U | (byte_at(text, i) & 0x3fU);
  }
  const bool overlong = code < (length == 2 ? 0x80U : length == 3 ? 0x800U : 0x10000U);
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return overlong || surrogate || code > 0x10ffff ? 0 : length;
}

void append_utf8(std::string& out, unsigned code) {
  const auto append = [&](unsigned byte) { out += static_cast<char>(byte & 0xffU); };
  if (code < 0x80) return append(code);
  const unsigned more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;  // bytes behind the first
  append(0xff00U >> (more + 1) | code >> 6 * more);
  for (unsigned left = more; left > 0; --left)
    append(0x80U | (code >> 6 * (left - 1) & 0x3fU));
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
  while (true) {
    // Nearly all strings that podqos writes need no escape.
    const std::size_t plain = plain_length(text);
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) return out += '"';
    const char c = text.front();
    const unsigned byte = byte_at(text, 0);
    text.remove_prefix(1);
    if (c == '"' || c == '\\') out += '\\';
    if (is_control(c))
      out += {'\\', 'u', '0', '0', kHex[byte >> 4U], kHex[byte & 0xfU]};
    else
      out += c;
  }
}

}  // namespace podqos::codec
