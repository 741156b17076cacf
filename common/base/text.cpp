#include "common/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace podqos {

namespace {

constexpr std::array kBinaryUnits = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
constexpr std::int64_t kBinaryStep = 1024;

constexpr bool is_plain(char c) {
  return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

}  // namespace

std::string text_internal::join(std::initializer_list<std::string_view> pieces) {
  std::size_t size = 0;
  for (const std::string_view piece : pieces)
    size += piece.size();
  std::string out;
  out.reserve(size);
  for (const std::string_view piece : pieces)
    out += piece;
  return out;
}

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

std::optional<std::size_t> place_of_word(std::string_view text, std::string_view word) {
  for (std::size_t place = 0; !text.empty(); ++place)
    if (read_until(text, ' ') == word) return place;
  return std::nullopt;
}

std::string_view word_at(std::string_view text, std::size_t place) {
  for (; place > 0; --place)
    read_until(text, ' ');
  return read_until(text, ' ');
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);  // npos + 1 is 0
}

std::string_view without_newline(std::string_view text) {
  return text.substr(0, text.find_last_not_of('\n') + 1);  // npos + 1 is 0
}

std::size_t plain_length(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::find_if_not(text, is_plain) - text.begin());
}

std::optional<std::int64_t> parse_int(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::string printable(std::string_view text, std::size_t limit) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (const char c : text.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_plain(c)) {
      out += c;
    } else if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else {
      out += {'\\', 'x', kHex[byte >> 4U], kHex[byte & 0xfU]};
    }
  }
  if (text.size() > limit) out += "…";
  return out;
}

std::string exact_amount(Bytes bytes) {
  std::int64_t amount = bytes.value();
  if (amount < 0) return "unlimited";
  std::size_t unit = 0;
  for (; amount != 0 && amount % kBinaryStep == 0 && unit + 1 < kBinaryUnits.size(); ++unit)
    amount /= kBinaryStep;
  return cat(amount, kBinaryUnits.at(unit));
}

std::string rounded_amount(Bytes bytes) {
  const std::int64_t value = bytes.value();
  if (value < 0) return std::to_string(value);
  std::size_t unit = 0;
  std::int64_t scale = 1;
  while (unit + 1 < kBinaryUnits.size() && value / scale >= kBinaryStep) {
    scale *= kBinaryStep;
    ++unit;
  }
  const std::int64_t rest = value % scale;
  const std::int64_t tenths = mul_div(rest, 10, scale);
  // rest * 10 % scale, halved on both sides: it must not overflow for exbibytes.
  const bool exact = rest * 5 % std::max<std::int64_t>(scale / 2, 1) == 0;
  return cat(exact ? "" : "~", value / scale, tenths == 0 ? "" : cat(".", tenths),
             kBinaryUnits.at(unit));
}

std::string format_amount(Bytes bytes) {
  constexpr std::size_t kReadable = 7;  // characters, as "10240Mi"
  std::string exact = exact_amount(bytes);
  if (exact.size() <= kReadable || bytes < Bytes{}) return exact;
  return cat(rounded_amount(bytes), " (", exact, ")");
}

std::string format_amount(MilliCpu cpu) {
  constexpr std::int64_t kMilli = 1000;
  if (cpu.value() % kMilli == 0) return cat(cpu.value() / kMilli);
  return cat(cpu.value(), "m");
}

std::string format_amount(Micros time) {
  constexpr std::int64_t kMilli = 1000;
  if (time.value() % kMilli == 0) return cat(time.value() / kMilli, "ms");
  return cat(time.value(), "us");
}

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325;
  for (const char byte : text) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= 0x0000'0100'0000'01b3;
  }
  return hash;
}

std::string fnv1a_hex(std::string_view text) {
  std::uint64_t hash = fnv1a(text);
  std::string out(16, '0');
  for (std::size_t i = out.size(); i-- > 0; hash >>= 4U)
    out[i] = "0123456789abcdef"[hash & 0xfU];
  return out;
}

}  // namespace podqos
