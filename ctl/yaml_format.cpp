#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "common/base/text.h"
#include "ctl/json_text.h"
#include "ctl/yaml.h"

namespace podqos::ctl {
namespace {

using codec::JsonNode;
using Kind = JsonNode::Kind;

/// Columns by which maps are indented, as kubectl prints them.
constexpr std::size_t kIndent = 2;
/// Characters that never end or change the meaning of a plain scalar.
constexpr std::string_view kPlain =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
/// Words that a YAML 1.1 or 1.2 parser reads as another type than a string.
constexpr std::array kReserved = {"true", "false", "yes", "no",  "on",  "off",
                                  "null", "y",     "n",   "inf", "nan", "e"};

/// A character that YAML parsers refuse raw, or read as the end of a line or the mark of an
/// encoding (YAML 1.1, sections 5.1 to 5.4), in UTF-8, and its escape. U+0080 to U+009F are found
/// by their range.
struct Special {
  std::string_view bytes;
  std::string_view escape;
};
constexpr std::array kSpecials = {
    Special{"\x7f", "\\x7f"},           Special{"\xe2\x80\xa8", "\\u2028"},
    Special{"\xe2\x80\xa9", "\\u2029"}, Special{"\xef\xbb\xbf", "\\ufeff"},
    Special{"\xef\xbf\xbe", "\\ufffe"}, Special{"\xef\xbf\xbf", "\\uffff"}};

/// The special character at the start of `text`: its bytes and its escape; none if there is none.
std::pair<std::size_t, std::string> special_at(std::string_view text) {
  for (const auto& [bytes, escape] : kSpecials) {
    if (text.starts_with(bytes)) return {bytes.size(), std::string{escape}};
  }
  const auto second = static_cast<unsigned char>(text.size() > 1 ? text[1] : '\0');
  if (!text.starts_with('\xc2') || second < 0x80 || second > 0x9f) return {};
  constexpr std::string_view kHex = "0123456789abcdef";
  return {2, cat("\\x", kHex.substr(second >> 4U, 1), kHex.substr(second & 0xfU, 1))};
}

/// Whether `text` has a character that is written as an escape.
bool has_special(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (static_cast<unsigned char>(text[at]) < 0x20 || special_at(text.substr(at)).first > 0)
      return true;
  }
  return false;
}

/// `text` in double quotes, with the escapes of JSON, which YAML has too, and those of specials.
std::string double_quoted(std::string_view text) {
  const std::string quoted = json_quote(text);
  std::string out;
  for (std::size_t at = 0; at < quoted.size();) {
    const auto [length, escape] = special_at(std::string_view{quoted}.substr(at));
    out += length > 0 ? escape : quoted.substr(at, 1);
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

/// Whether `text` is a quantity such as "250m" or "1Gi": a string in every YAML version, and
/// usually written without quotes.
bool is_quantity(std::string_view text) {
  constexpr std::array kSuffixes = {"m",  "k",  "M",  "G",  "T",  "P",
                                    "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  return digits > 0 && std::ranges::find(kSuffixes, text.substr(digits)) != kSuffixes.end();
}

/// Whether a string can be written without quotes and is read as a string by every YAML version.
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

/// Whether `text` can be written as a literal block: several lines of printable ASCII, the first
/// one without indentation.
bool is_block(std::string_view text) {
  if (text.find('\n') == std::string_view::npos || std::string_view{" \t\n"}.contains(text.front()))
    return false;
  return std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == '\n' || byte == '\t' || (byte >= 0x20 && byte < 0x7f);
  });
}

/// An empty object or array without white space; any other value as it is.
std::string_view without_space(const JsonNode& value) {
  if (value.kind == Kind::kObject) return "{}";
  return value.kind == Kind::kArray ? "[]" : value.raw;
}

/// The header of a literal block that keeps exactly the line ends of `text` (YAML 1.2, section
/// 8.1.1.2).
std::string_view chomping(std::string_view text) {
  if (!text.ends_with('\n')) return "|-";
  return text.ends_with("\n\n") ? "|+" : "|";
}

/// Writes JSON text as block-style YAML.
class Writer {
 public:
  /// Appends a value after "key:" or "-": on the same line, or on lines of its own.
  void append(const JsonNode& value, std::size_t indent, bool in_sequence) {
    if (value.children.empty()) {
      append_scalar(value, indent);
    } else if (value.kind == Kind::kObject) {
      append_map(value.children, indent, in_sequence);
    } else {
      append_sequence(value.children, indent, in_sequence);
    }
  }
  std::string release() { return std::move(out_); }

  /// Appends a map.
  /// @param in_sequence  the first member follows "-" on the same line
  void append_map(const std::vector<JsonNode>& members, std::size_t indent, bool in_sequence) {
    bool same_line = in_sequence;
    if (!same_line && !out_.empty()) out_ += '\n';
    for (const JsonNode& member : members) {
      out_.append(same_line ? 1 : indent, ' ');
      same_line = false;
      out_ += cat(format_yaml_scalar(member.key), ":");
      // A list below a key keeps the key's indentation, as kubectl prints it.
      const bool list = !json_elements(&member).empty();
      append(member, list ? indent : indent + kIndent, false);
    }
  }

 private:
  /// Appends a sequence, one element a line.
  void append_sequence(const std::vector<JsonNode>& elements, std::size_t indent,
                       bool in_sequence) {
    if (in_sequence || !out_.empty()) out_ += '\n';
    for (const JsonNode& element : elements) {
      out_ += cat(std::string(indent, ' '), "-");
      append(element, indent + kIndent, true);
    }
  }

  /// Appends a scalar, or an empty object or array, on the same line; text of several lines as a
  /// block.
  void append_scalar(const JsonNode& value, std::size_t indent) {
    if (value.kind != Kind::kString) {
      out_ += cat(" ", without_space(value), "\n");
    } else if (is_block(value.text)) {
      append_block(value.text, indent);
    } else {
      out_ += cat(" ", format_yaml_scalar(value.text), "\n");
    }
  }

  /// Appends a literal block.
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
  if (text.find('"') == std::string_view::npos || has_special(text)) return double_quoted(text);
  std::string quoted = "'";
  for (const char c : text)
    quoted.append(c == '\'' ? 2 : 1, c);
  return quoted + '\'';
}

std::string format_yaml(std::string_view json) {
  Writer writer;
  const codec::JsonTree tree = json_tree(json);
  if (tree.kind != Kind::kObject || tree.children.empty()) return cat(json, "\n");
  writer.append_map(tree.children, 0, false);
  return writer.release();
}

}  // namespace podqos::ctl
