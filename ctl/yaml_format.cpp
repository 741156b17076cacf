#include <algorithm>
#include <array>
#include <string>

#include "common/base/text.h"
#include "ctl/json_text.h"
#include "ctl/yaml.h"

namespace podqos::ctl {
namespace {

constexpr std::size_t kIndent = 2;
constexpr std::string_view kPlain =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
/// Words that some YAML parser reads as something other than a string.
constexpr std::array kReserved = {"true", "false", "yes", "no",  "on",  "off",
                                  "null", "y",     "n",   "inf", "nan", "e"};

bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
}

/// "250m", "1Gi": what no YAML version takes for a number, and people write without quotes.
bool is_quantity(std::string_view text) {
  constexpr std::array kSuffixes = {"m",  "k",  "M",  "G",  "T",  "P",
                                    "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  return digits > 0 && std::ranges::find(kSuffixes, text.substr(digits)) != kSuffixes.end();
}

bool is_plain(std::string_view text) {
  if (is_quantity(text)) return true;
  if (text.empty() || text.find_first_not_of(kPlain) != std::string_view::npos) return false;
  const char first = text.front();
  const bool begins_safely = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') ||
                             (first == '/' && text.size() > 1);
  if (!begins_safely) return false;
  std::string lower{text};
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return std::ranges::find(kReserved, lower) == kReserved.end();
}

/// May `text` stand as a literal block: lines of printable text, the first without indentation?
bool is_block(std::string_view text) {
  if (text.find('\n') == std::string_view::npos || text.front() == ' ' || text.front() == '\n')
    return false;
  return std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\n' || byte == '\t' || (byte >= 0x20 && byte < 0x7f);
  });
}

/// An empty object or list on one line; numbers and words are that already.
std::string_view without_space(std::string_view value) {
  if (value.starts_with('{')) return "{}";
  return value.starts_with('[') ? "[]" : value;
}

std::string_view chomping(std::string_view text) {
  if (!text.ends_with('\n')) return "|-";
  return text.ends_with("\n\n") ? "|+" : "|";
}

class Writer {
 public:
  /// Appends a value behind "key:" or "-": on the same line, or on lines of its own.
  void append(std::string_view value, std::size_t indent, bool in_sequence) {
    const auto members = json_members(value);
    const auto elements = json_elements(value);
    if (!members.empty()) {
      append_map(members, indent, in_sequence);
    } else if (!elements.empty()) {
      append_sequence(elements, indent, in_sequence);
    } else {
      append_scalar(value, indent);
    }
  }
  std::string release() { return std::move(out_); }

  void append_map(const std::vector<JsonMember>& members, std::size_t indent, bool in_sequence) {
    bool same_line = in_sequence;
    if (!same_line && !out_.empty()) out_ += '\n';
    for (const JsonMember& member : members) {
      out_.append(same_line ? 1 : indent, ' ');
      same_line = false;
      out_ += cat(format_yaml_scalar(member.key), ":");
      // A list below a key keeps the key's indentation, as kubectl prints it.
      const bool list = !json_elements(member.value).empty();
      append(member.value, list ? indent : indent + kIndent, false);
    }
  }

 private:
  void append_sequence(const std::vector<std::string_view>& elements, std::size_t indent,
                       bool in_sequence) {
    if (in_sequence || !out_.empty()) out_ += '\n';
    for (const std::string_view element : elements) {
      out_ += cat(std::string(indent, ' '), "-");
      append(element, indent + kIndent, true);
    }
  }

  void append_scalar(std::string_view value, std::size_t indent) {
    const auto text = json_text_of(value);
    if (!text) {
      out_ += cat(" ", without_space(value), "\n");
    } else if (is_block(*text)) {
      append_block(*text, indent);
    } else {
      out_ += cat(" ", format_yaml_scalar(*text), "\n");
    }
  }

  void append_block(std::string_view text, std::size_t indent) {
    out_ += cat(" ", chomping(text), "\n");
    std::size_t at = 0;
    while (at < text.size()) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      if (end > at) out_ += cat(std::string(indent, ' '), text.substr(at, end - at));
      out_ += '\n';
      at = end + 1;
    }
  }

  std::string out_;
};

}  // namespace

bool has_crlf(std::string_view text) {
  const std::size_t end = text.find('\n');
  return end != std::string_view::npos && end > 0 && text[end - 1] == '\r';
}

std::string with_crlf(std::string_view text) {
  std::string out;
  for (const char c : text)
    c == '\n' ? out.append("\r\n") : out.append(1, c);
  return out;
}

std::string format_yaml_scalar(std::string_view text) {
  if (is_plain(text)) return std::string{text};
  if (text.find('"') == std::string_view::npos || has_control(text)) return json_quote(text);
  std::string quoted = "'";
  for (const char c : text)
    quoted.append(c == '\'' ? 2 : 1, c);
  return quoted + '\'';
}

std::string format_yaml(std::string_view json) {
  Writer writer;
  const auto members = json_members(json);
  if (members.empty()) return cat(json, "\n");
  writer.append_map(members, 0, false);
  return writer.release();
}

}  // namespace podqos::ctl
