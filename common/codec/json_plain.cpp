#include "common/codec/json_plain.h"

#include <charconv>
#include <cstddef>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/codec/json_text.h"

namespace podqos::codec {

namespace {

using Kind = JsonNode::Kind;

/// Doubles have up to 308 digits: a number of at most this length is in their range.
constexpr std::ptrdiff_t kMaxPlainNumber = 32;

/// Most objects written by podqos, with what is nested in them, have no more members.
constexpr std::size_t kUsualPending = 64;

/// Length in bytes of \uXXXX.
constexpr std::size_t kUnitLength = 6;

constexpr bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// The UTF-16 code unit that the escape \uXXXX at the start of `text` stands for.
std::optional<unsigned> escaped_unit(std::string_view text) {
  if (text.size() < kUnitLength || !text.starts_with("\\u")) return std::nullopt;
  unsigned unit = 0;
  const char* const end = text.data() + kUnitLength;
  const auto parsed = std::from_chars(text.data() + 2, end, unit, 16);
  return parsed.ec == std::errc{} && parsed.ptr == end ? std::optional{unit} : std::nullopt;
}

/// Length in bytes of the valid escape at the start of `text`, which begins with a backslash; 0 if
/// there is none. Surrogates are valid in pairs only, and are one escape then.
/// @note RFC 8259, section 7
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2) return 0;
  if (text[1] != 'u') return std::string_view{"\"\\/bfnrt"}.contains(text[1]) ? 2 : 0;
  const auto is_between = [](std::optional<unsigned> unit, unsigned first, unsigned last) {
    return unit && *unit >= first && *unit <= last;
  };
  const auto unit = escaped_unit(text);
  if (!unit || is_between(unit, 0xdc00, 0xdfff)) return 0;
  if (!is_between(unit, 0xd800, 0xdbff)) return kUnitLength;
  return is_between(escaped_unit(text.substr(kUnitLength)), 0xdc00, 0xdfff) ? 2 * kUnitLength : 0;
}

/// A recursive descent over plain JSON. When a parse function returns false, the position is
/// undefined and the descent must end.
class PlainWalk {
 public:
  PlainWalk(std::string_view text, const JsonBounds& bounds)
      : at_(text.data()), end_(at_ + text.size()), bounds_(bounds), left_(bounds.values) {}

  /// The tree of the whole text.
  std::optional<JsonTree> parse() {
    pending_.reserve(kUsualPending);
    if (!parse_node(tree_, bounds_.depth)) return std::nullopt;
    skip_space();
    if (at_ != end_) return std::nullopt;
    return std::move(tree_);
  }

 private:
  [[nodiscard]] std::string_view rest() const {
    return {at_, static_cast<std::size_t>(end_ - at_)};
  }
  [[nodiscard]] std::string_view text_from(const char* begin) const {
    return {begin, static_cast<std::size_t>(at_ - begin)};
  }
  void skip_space() {
    while (at_ != end_ && is_space(*at_))
      ++at_;
  }
  /// Skips white space and consumes this byte.
  bool accept(char wanted) {
    skip_space();
    return parse_here(wanted);
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
  bool parse_node(JsonNode& node, std::size_t levels);
  bool parse_value(JsonNode& node, std::size_t levels);
  bool parse_members(JsonNode& object, std::size_t levels);
  bool parse_member(const JsonNode& object, JsonNode& member, std::size_t levels);
  bool parse_elements(JsonNode& array, std::size_t levels);
  bool store(JsonNode&& child);
  void take_children(JsonNode& parent, std::size_t first);
  bool parse_string(std::string_view& value);
  bool parse_number();
  bool parse_literal(std::string_view literal);

  const char* at_;
  const char* end_;
  const JsonBounds& bounds_;
  JsonTree tree_;
  std::size_t left_;     ///< values that may still be stored
  bool storing_ = true;  ///< false within a member that is not read
  /// The children so far of each container that is being parsed, the innermost one's last. They get
  /// their place in the tree when their number is known.
  std::vector<JsonNode> pending_;
};

bool PlainWalk::parse_node(JsonNode& node, std::size_t levels) {
  skip_space();
  const char* const begin = at_;
  if (at_ == end_ || !parse_value(node, levels)) return false;
  node.raw = text_from(begin);
  if (node.kind == Kind::kNumber || node.kind == Kind::kBoolean) node.text = node.raw;
  return true;
}

/// Parses the value that begins here.
bool PlainWalk::parse_value(JsonNode& node, std::size_t levels) {
  switch (*at_) {
    case '"': node.kind = Kind::kString; return parse_string(node.text);
    case '{': node.kind = Kind::kObject; return levels > 0 && parse_members(node, levels - 1);
    case '[': node.kind = Kind::kArray; return levels > 0 && parse_elements(node, levels - 1);
    case 't': node.kind = Kind::kBoolean; return parse_literal("true");
    case 'f': node.kind = Kind::kBoolean; return parse_literal("false");
    case 'n': return parse_literal("null");
    default: node.kind = Kind::kNumber; return parse_number();
  }
}

bool PlainWalk::parse_members(JsonNode& object, std::size_t levels) {
  ++at_;
  if (accept('}')) return true;
  const std::size_t first = pending_.size();
  do {
    JsonNode member;
    if (!parse_member(object, member, levels) || !store(std::move(member))) return false;
  } while (accept(','));
  take_children(object, first);
  return accept('}');
}

bool PlainWalk::parse_member(const JsonNode& object, JsonNode& member, std::size_t levels) {
  skip_space();
  const char* const begin = at_;
  if (!rest().starts_with('"') || !parse_string(member.key)) return false;
  member.raw_key = text_from(begin);
  if (!accept(':')) return false;
  skip_space();
  const bool container = rest().starts_with('{') || rest().starts_with('[');
  const bool storing = storing_;
  storing_ = storing && (!container || bounds_.reads(object.key, member.key));
  const bool parsed = parse_node(member, levels);
  storing_ = storing;
  return parsed;
}

bool PlainWalk::parse_elements(JsonNode& array, std::size_t levels) {
  ++at_;
  if (accept(']')) return true;
  const std::size_t first = pending_.size();
  do {
    JsonNode element;
    if (!parse_node(element, levels) || !store(std::move(element))) return false;
  } while (accept(','));
  take_children(array, first);
  return accept(']');
}

/// Adds a child to the container that is being parsed, unless it is not read.
/// @return false beyond the bound.
bool PlainWalk::store(JsonNode&& child) {
  if (!storing_) return true;
  if (left_ == 0) return false;
  --left_;
  pending_.push_back(std::move(child));
  return true;
}

/// Moves the children from `first` on, all that are pending, to their parent.
void PlainWalk::take_children(JsonNode& parent, std::size_t first) {
  const auto begin = pending_.begin() + static_cast<std::ptrdiff_t>(first);
  parent.children.assign(std::make_move_iterator(begin), std::make_move_iterator(pending_.end()));
  pending_.erase(begin, pending_.end());
}

/// Parses the string that begins here. Without escapes, its bytes are its value; with them, the
/// full parser reads it, unless it is in a member that is not read.
bool PlainWalk::parse_string(std::string_view& value) {
  const char* const begin = at_++;
  bool escaped = false;
  while (true) {
    at_ += plain_length(rest());
    if (at_ == end_) return false;
    if (parse_here('"')) break;
    // Control bytes are invalid in a string; DEL is allowed and has length 1.
    const bool invalid = static_cast<unsigned char>(*at_) < 0x20;
    const bool escape = *at_ == '\\';
    const std::size_t length = invalid ? 0 : escape ? escape_length(rest()) : utf8_length(rest());
    if (length == 0) return false;
    at_ += length;
    escaped = escaped || escape;
  }
  const std::string_view raw = text_from(begin);
  value = raw.substr(1, raw.size() - 2);
  if (!escaped || !storing_) return true;
  const auto decoded = nlohmann::json::parse(raw, nullptr, false);
  if (!decoded.is_string()) return false;
  value = tree_.keep(decoded.get<std::string>());
  return true;
}

bool PlainWalk::parse_number() {
  const char* const begin = at_;
  parse_here('-');
  // No leading zeros; RFC 8259, section 6.
  if (!parse_here('0') && !read_digits()) return false;
  if (parse_here('.') && !read_digits()) return false;
  return at_ - begin <= kMaxPlainNumber && (at_ == end_ || (*at_ != 'e' && *at_ != 'E'));
}

bool PlainWalk::parse_literal(std::string_view literal) {
  if (!rest().starts_with(literal)) return false;
  at_ += literal.size();
  return true;
}

}  // namespace

std::optional<JsonTree> plain_tree(std::string_view text, const JsonBounds& bounds) {
  return PlainWalk{text, bounds}.parse();
}

}  // namespace podqos::codec
