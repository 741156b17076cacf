#include "common/codec/json_plain.h"

#include <algorithm>

#include "common/base/text.h"
#include "common/codec/json_text.h"

namespace podqos::codec {

namespace {

/// 64-bit integers have up to 20 digits and doubles up to 308: a number of at most this length is
/// in the range of both.
constexpr std::ptrdiff_t kMaxPlainNumber = 32;

/// Most objects written by podqos have no more members.
constexpr std::size_t kUsualChildren = 8;

constexpr bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

constexpr bool is_below_space(char c) {
  return static_cast<unsigned char>(c) < 0x20;
}

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

constexpr bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// A recursive descent over plain JSON. When a parse function returns false, the position is
/// undefined and the descent must end.
class PlainWalk {
 public:
  PlainWalk(const char* at, const char* end) : at_(at), end_(end) {}

  [[nodiscard]] const char* at() const { return at_; }
  [[nodiscard]] std::string_view rest() const {
    return {at_, static_cast<std::size_t>(end_ - at_)};
  }

  /// Skips white space and consumes this byte.
  bool accept(char wanted) {
    skip_space();
    return parse_here(wanted);
  }
  bool parse_value(std::size_t levels);
  /// The same, storing the value in `node`.
  bool parse_node(JsonNode& node, std::size_t levels);
  /// Skips white space; whether nothing else is left.
  bool parse_end() {
    skip_space();
    return at_ == end_;
  }

 private:
  void skip_space() {
    while (at_ != end_ && is_space(*at_))
      ++at_;
  }
  /// Consumes this byte, without white space before it.
  bool parse_here(char wanted) {
    if (at_ == end_ || *at_ != wanted) return false;
    ++at_;
    return true;
  }
  bool read_digits() {
    const char* const begin = at_;
    while (at_ != end_ && is_digit(*at_))
      ++at_;
    return at_ != begin;
  }
  bool parse_object(std::size_t levels);
  bool parse_array(std::size_t levels);
  bool parse_text();
  bool parse_escape();
  bool parse_number();
  bool parse_literal(std::string_view literal);
  bool parse_members(JsonNode& object, std::size_t levels);
  bool parse_elements(JsonNode& array, std::size_t levels);
  bool parse_verbatim(std::string_view& text);
  bool parse_digits_of(JsonNode& number);

  const char* at_;
  const char* end_;
};

bool PlainWalk::parse_value(std::size_t levels) {
  skip_space();
  if (at_ == end_) return false;
  switch (*at_) {
    case '"': ++at_; return parse_text();
    case '{': ++at_; return levels > 0 && parse_object(levels - 1);
    case '[': ++at_; return levels > 0 && parse_array(levels - 1);
    case 't': return parse_literal("true");
    case 'f': return parse_literal("false");
    case 'n': return parse_literal("null");
    default: return parse_number();
  }
}

bool PlainWalk::parse_object(std::size_t levels) {
  if (accept('}')) return true;
  do {
    if (!accept('"') || !parse_text() || !accept(':') || !parse_value(levels)) return false;
  } while (accept(','));
  return accept('}');
}

bool PlainWalk::parse_array(std::size_t levels) {
  if (accept(']')) return true;
  do {
    if (!parse_value(levels)) return false;
  } while (accept(','));
  return accept(']');
}

/// Parses a string after its opening quote.
bool PlainWalk::parse_text() {
  while (true) {
    at_ += plain_length(rest());
    if (at_ == end_) return false;
    if (parse_here('"')) return true;
    if (parse_here('\\')) {
      if (!parse_escape()) return false;
    } else {
      // Control bytes are invalid in a string; DEL is allowed and has length 1.
      const std::size_t length = is_below_space(*at_) ? 0 : utf8_length(rest());
      if (length == 0) return false;
      at_ += length;
    }
  }
}

/// Parses an escape after its backslash; surrogates are left to the full parser.
bool PlainWalk::parse_escape() {
  constexpr std::string_view kShortEscapes = "\"\\/bfnrt";
  constexpr std::ptrdiff_t kHexDigits = 4;
  if (at_ == end_) return false;
  const char kind = *at_++;
  if (kind != 'u') return kShortEscapes.contains(kind);
  if (end_ - at_ < kHexDigits || !std::all_of(at_, at_ + kHexDigits, is_hex_digit)) return false;
  // U+D800 to U+DFFF.
  const bool surrogate = (*at_ == 'd' || *at_ == 'D') && (at_[1] < '0' || at_[1] > '7');
  at_ += kHexDigits;
  return !surrogate;
}

bool PlainWalk::parse_number() {
  const char* const begin = at_;
  parse_here('-');
  // No leading zeros; RFC 8259, section 6.
  if (!parse_here('0') && !read_digits()) return false;
  if (parse_here('.') && !read_digits()) return false;
  return at_ - begin <= kMaxPlainNumber && (at_ == end_ || (*at_ != 'e' && *at_ != 'E'));
}

bool PlainWalk::parse_node(JsonNode& node, std::size_t levels) {
  using Kind = JsonNode::Kind;
  const auto literal = [&](Kind kind, std::string_view name, std::string_view text) {
    node.kind = kind;
    node.text = text;
    return parse_literal(name);
  };
  skip_space();
  if (at_ == end_) return false;
  switch (*at_) {
    case '"':
      ++at_;
      node.kind = Kind::kString;
      return parse_verbatim(node.text);
    case '{':
      ++at_;
      node.kind = Kind::kObject;
      return levels > 0 && parse_members(node, levels - 1);
    case '[':
      ++at_;
      node.kind = Kind::kArray;
      return levels > 0 && parse_elements(node, levels - 1);
    case 't': return literal(Kind::kBoolean, "true", "true");
    case 'f': return literal(Kind::kBoolean, "false", "false");
    case 'n': return literal(Kind::kNull, "null", {});
    default: node.kind = Kind::kNumber; return parse_digits_of(node);
  }
}

bool PlainWalk::parse_members(JsonNode& object, std::size_t levels) {
  if (accept('}')) return true;
  object.children.reserve(kUsualChildren);
  do {
    JsonNode& member = object.children.emplace_back();
    if (!accept('"') || !parse_verbatim(member.key) || !accept(':') || !parse_node(member, levels))
      return false;
  } while (accept(','));
  return accept('}');
}

bool PlainWalk::parse_elements(JsonNode& array, std::size_t levels) {
  if (accept(']')) return true;
  do {
    if (!parse_node(array.children.emplace_back(), levels)) return false;
  } while (accept(','));
  return accept(']');
}

/// Parses a string after its opening quote. Without escapes, its bytes are its value.
bool PlainWalk::parse_verbatim(std::string_view& text) {
  const char* const begin = at_;
  while (true) {
    at_ += plain_length(rest());
    if (at_ == end_ || *at_ == '\\' || is_below_space(*at_)) return false;
    if (*at_ == '"') break;
    const std::size_t length = utf8_length(rest());
    if (length == 0) return false;
    at_ += length;
  }
  text = {begin, static_cast<std::size_t>(at_ - begin)};
  ++at_;
  return true;
}

/// Rejects -0, which the full parser turns into 0, and integers beyond 64 bits, which it turns into
/// floats.
bool PlainWalk::parse_digits_of(JsonNode& number) {
  const char* const begin = at_;
  if (!parse_number()) return false;
  const std::string_view digits{begin, static_cast<std::size_t>(at_ - begin)};
  if (!digits.contains('.') && (digits == "-0" || !parse_int(digits))) return false;
  number.text = digits;
  return true;
}

bool PlainWalk::parse_literal(std::string_view literal) {
  if (!rest().starts_with(literal)) return false;
  at_ += literal.size();
  return true;
}

}  // namespace

std::optional<std::size_t> end_of_plain_member(std::string_view text, std::size_t name_end,
                                               std::size_t levels) {
  PlainWalk walk{text.data() + name_end, text.data() + text.size()};
  if (!walk.accept(':') || !walk.parse_value(levels)) return std::nullopt;
  return static_cast<std::size_t>(walk.at() - text.data());
}

std::optional<JsonTree> plain_tree(std::string_view text, std::size_t levels) {
  PlainWalk walk{text.data(), text.data() + text.size()};
  JsonTree tree;
  if (!walk.parse_node(tree, levels) || !walk.parse_end()) return std::nullopt;
  return tree;
}

}  // namespace podqos::codec
