#include "common/codec/exposition.h"

#include <array>
#include <charconv>
#include <cmath>

namespace podqos::codec {

namespace {

/// Appends text with a backslash before each special character; a line feed becomes "\n".
void append_escaped(std::string& out, std::string_view text, std::string_view special) {
  for (const char c : text) {
    if (special.contains(c)) out += '\\';
    out += c == '\n' ? 'n' : c;
  }
}

}  // namespace

std::string format_metric_value(double value) {
  // Without an exponent, for readability, up to 2^53, where a double no longer holds each integer.
  constexpr double kLeast = 1e-6;
  constexpr double kMost = 9007199254740992.0;
  const double size = std::abs(value);
  const auto format =
      size >= kLeast && size <= kMost ? std::chars_format::fixed : std::chars_format::general;
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.begin(), text.end(), value, format);
  return {text.data(), end.ptr};
}

void Exposition::metric(std::string_view type, std::string_view name, std::string_view help) {
  type_ = type;
  name_ = name;
  help_ = help;
  has_samples_ = false;
}

void Exposition::sample(Labels labels, double value, std::string_view suffix) {
  if (!std::exchange(has_samples_, true)) {
    text_.append("# HELP ").append(name_).append(" ");
    append_escaped(text_, help_, "\\\n");
    text_.append("\n# TYPE ").append(name_).append(" ").append(type_).append("\n");
  }
  text_.append(name_).append(suffix);
  char before = '{';
  for (const auto& [name, text] : labels) {
    text_ += std::exchange(before, ',');
    text_.append(name).append("=\"");
    append_escaped(text_, text, "\\\"\n");
    text_ += '"';
  }
  text_.append(labels.size() == 0 ? " " : "} ").append(format_metric_value(value)).append("\n");
}

}  // namespace podqos::codec
