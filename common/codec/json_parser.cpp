#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <system_error>

#include "common/codec/json_text.h"
#include "common/codec/json_tree.h"

namespace podqos::codec {

namespace {

using Kind = JsonNode::Kind;

/// Most objects written by podqos, with what is nested in them, have no more members.
constexpr std::size_t kUsualPending = 64;

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
/// U+FFFD, in place of what is not valid Unicode.
constexpr unsigned kReplacement = 0xfffd;

constexpr bool is_json_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/// A recursive descent over a text; RFC 8259. When a function returns false, the descent ends: the
/// error tells why.
class JsonParser {
 public:
  JsonParser(std::string_view text, const JsonBounds& bounds) : text_(text), bounds_(bounds) {}

  JsonPrefix parse() {
    parse_text();
    return {.tree = std::move(tree_), .error = std::move(error_)};
  }

 private:
  bool parse_text();
  [[nodiscard]] std::string_view rest() const { return {at_, end_}; }
  [[nodiscard]] bool is_strict() const { return bounds_.rules == JsonRules::kStrict; }

  /// Skips white space, and comments where they are ignored.
  void skip_space() {
    do {
      while (at_ != end_ && is_json_space(*at_))
        ++at_;
    } while (at_ != end_ && *at_ == '/' && skip_comment());
  }
  [[gnu::cold]] bool skip_comment();
  /// Skips white space and consumes this byte.
  bool accept(char wanted) {
    skip_space();
    return accept_here(wanted);
  }
  /// Whether a comma was the container's last byte, as people leave it there.
  bool ends_behind_comma(char end) {
    if (bounds_.comments == JsonComments::kRefuse) return false;
    skip_space();
    return rest().starts_with(end);
  }
  bool accept_here(char wanted) {
    if (at_ == end_ || *at_ != wanted) return false;
    ++at_;
    return true;
  }
  bool accept_digits() {
    const char* const begin = at_;
    while (at_ != end_ && is_digit(*at_))
      ++at_;
    return at_ != begin;
  }

  /// @param at  where the text is malformed
  bool refuse(const char* at, std::string_view why) {
    error_ = {.code = ErrorCode::kInvalidArgument,
              .message = cat("malformed JSON at ", format_position(text_, {at, end_}), ": ", why)};
    return false;
  }
  bool refuse_here(std::string_view expected) {
    const std::string found = at_ == end_ ? "the end" : cat("\"", printable({at_, 1}), "\"");
    return refuse(at_, cat("expected ", expected, ", found ", found));
  }
  bool refuse_bound(std::string_view why) {
    error_ = {.code = ErrorCode::kTooLarge,
              .message = cat(why, " at ", format_position(text_, rest()))};
    return false;
  }

  bool parse_value(JsonNode& node);
  bool parse_container(JsonNode& container, Kind kind);
  bool parse_child(const JsonNode& parent);
  bool parse_string(std::string_view& value);
  bool parse_escape(std::string& out);
  std::optional<unsigned> parse_unit();
  bool parse_number();
  bool parse_literal(JsonNode& node, Kind kind, std::string_view literal);

  std::string_view text_;
  const JsonBounds& bounds_;
  const char* at_ = text_.data();
  const char* end_ = at_ + text_.size();
  JsonTree tree_;
  std::size_t left_ = bounds_.values;  ///< values that may still be stored
  std::size_t depth_ = 0;              ///< of the innermost container that is being parsed
  bool storing_ = true;                ///< false within a member that is not read
  /// The children so far of the containers that are being parsed, the innermost one's last. They
  /// get their place in the tree when their number is known.
  std::vector<JsonNode> pending_;
  std::optional<Error> error_;
};

bool JsonParser::parse_text() {
  if (const std::size_t size = text_.size(); size > bounds_.bytes) {
    error_ = {.code = ErrorCode::kTooLarge,
              .message = cat("JSON of ", size, " bytes, at most ", bounds_.bytes, " are read")};
    return false;
  }
  // Programs in C take it for the end of the text, also in a comment.
  if (const std::size_t nul = text_.find('\0'); nul != std::string_view::npos)
    return refuse(at_ + nul, "NUL byte");
  pending_.reserve(kUsualPending);
  if (rest().starts_with(kByteOrderMark)) at_ += kByteOrderMark.size();
  skip_space();
  if (!parse_value(tree_)) return false;
  skip_space();
  return at_ == end_ || refuse_here("the end of the text");
}

bool JsonParser::skip_comment() {
  const bool line = rest().starts_with("//");
  if (bounds_.comments == JsonComments::kRefuse || !(line || rest().starts_with("/*")))
    return false;
  const std::size_t end =
      line ? std::min(rest().find_first_of("\r\n"), rest().size()) : rest().find("*/", 2);
  if (end == std::string_view::npos) return false;
  at_ += line ? end : end + 2;
  return true;
}

/// Parses the value that begins here.
bool JsonParser::parse_value(JsonNode& node) {
  const char* const begin = at_;
  bool parsed = false;
  switch (at_ == end_ ? '\0' : *at_) {
    case '{': parsed = parse_container(node, Kind::kObject); break;
    case '[': parsed = parse_container(node, Kind::kArray); break;
    case 't': parsed = parse_literal(node, Kind::kBoolean, "true"); break;
    case 'f': parsed = parse_literal(node, Kind::kBoolean, "false"); break;
    case 'n': parsed = parse_literal(node, Kind::kNull, "null"); break;
    case '"':
      node.kind = Kind::kString;
      parsed = parse_string(node.text);
      break;
    default: node.kind = Kind::kNumber; parsed = parse_number();
  }
  if (!parsed) return false;
  node.raw = {begin, at_};
  if (node.kind == Kind::kNumber || node.kind == Kind::kBoolean) node.text = node.raw;
  return true;
}

/// Parses an object or array. Before an error, it gets the children that are complete.
bool JsonParser::parse_container(JsonNode& container, Kind kind) {
  if (depth_ == bounds_.depth)
    return refuse_bound(cat("JSON nested deeper than ", bounds_.depth, " levels"));
  ++at_;
  ++depth_;
  container.kind = kind;
  const bool object = kind == Kind::kObject;
  const std::size_t first = pending_.size();
  bool parsed = accept(object ? '}' : ']');
  if (!parsed) {
    do
      parsed = parse_child(container);
    while (parsed && accept(',') && !ends_behind_comma(object ? '}' : ']'));
    parsed = parsed && (accept(object ? '}' : ']') ||
                        refuse_here(object ? R"("," or "}")" : R"("," or "]")"));
  }
  const auto begin = pending_.begin() + static_cast<std::ptrdiff_t>(first);
  container.children.assign(std::make_move_iterator(begin),
                            std::make_move_iterator(pending_.end()));
  pending_.erase(begin, pending_.end());
  --depth_;
  return parsed;
}

/// Parses a member or an element, and stores it if it is read.
bool JsonParser::parse_child(const JsonNode& parent) {
  JsonNode child;
  skip_space();
  const bool stored = storing_;
  if (parent.kind == Kind::kObject) {
    const char* const begin = at_;
    if (!rest().starts_with('"')) return refuse_here("the name of a member");
    if (!parse_string(child.key)) return false;
    child.raw_key = {begin, at_};
    if (!accept(':')) return refuse_here("\":\"");
    skip_space();
    const bool container = rest().starts_with('{') || rest().starts_with('[');
    if (stored && container && bounds_.is_read != nullptr)
      storing_ = bounds_.is_read(parent.key, child.key);
  }
  if (stored && left_-- == 0)
    return refuse_bound(cat("JSON with more than ", bounds_.values, " values that are read: \"",
                            printable(child.key), "\""));
  const bool parsed = parse_value(child);
  storing_ = stored;
  if (parsed && stored) pending_.push_back(std::move(child));
  return parsed;
}

/// Parses the string that begins here. Without escapes, its bytes are its value.
bool JsonParser::parse_string(std::string_view& value) {
  const char* const begin = at_++;
  const char* run = at_;  // after the last escape
  std::string decoded;
  at_ += plain_length(rest());
  while (!accept_here('"')) {
    if (at_ == end_) return refuse(begin, "string without end");
    // Control bytes are invalid in a string, but for DEL.
    if (static_cast<unsigned char>(*at_) < 0x20) return refuse(begin, "control byte in a string");
    if (*at_ == '\\') {
      decoded.append(run, at_);
      if (!parse_escape(decoded)) return refuse(begin, "invalid escape in a string");
      run = at_;
    } else if (const std::size_t length = utf8_length(rest()); length > 0) {
      at_ += length;
    } else if (!is_strict()) {
      append_utf8(decoded.append(run, at_), kReplacement);
      run = ++at_;
    } else {
      return refuse(begin, "string that is not UTF-8");
    }
    at_ += plain_length(rest());
  }
  const char* const end = at_ - 1;
  value = {begin + 1, end};
  if (run == begin + 1 || !storing_) return true;
  value = tree_.keep(std::move(decoded.append(run, end)));
  return true;
}

/// Parses the escape that begins here. Surrogates are valid in pairs only, and one escape then.
bool JsonParser::parse_escape(std::string& out) {
  constexpr std::string_view kEscapes = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  if (rest().size() < 2) return false;
  if (const std::size_t at = kEscapes.find(at_[1]); at != std::string_view::npos) {
    out += kMeanings[at];
    at_ += 2;
    return true;
  }
  constexpr unsigned kHigh = 0xd800;
  constexpr unsigned kLow = 0xdc00;
  constexpr unsigned kEndOfLow = 0xe000;
  const auto unit = parse_unit();
  if (!unit) return false;
  unsigned code = *unit;
  if (code >= kHigh && code < kEndOfLow) {
    const char* const second = at_;
    const auto low = code < kLow ? parse_unit() : std::nullopt;
    const bool paired = low && *low >= kLow && *low < kEndOfLow;
    if (!paired && is_strict()) return false;
    if (!paired) at_ = second;
    code = paired ? 0x10000 + ((code - kHigh) << 10U) + (*low - kLow) : kReplacement;
  }
  append_utf8(out, code);
  return true;
}

/// Parses \uXXXX, a unit of UTF-16.
std::optional<unsigned> JsonParser::parse_unit() {
  constexpr std::size_t kLength = 6;
  if (rest().size() < kLength || !rest().starts_with("\\u")) return std::nullopt;
  unsigned unit = 0;
  const auto parsed = std::from_chars(at_ + 2, at_ + kLength, unit, 16);
  at_ += kLength;
  return parsed.ec == std::errc{} && parsed.ptr == at_ ? std::optional{unit} : std::nullopt;
}

bool JsonParser::parse_number() {
  constexpr std::size_t kSurelyFinite = 300;  // doubles have up to 308 digits before the point
  const char* const begin = at_;
  accept_here('-');
  // No leading zeros; RFC 8259, section 6.
  bool valid = accept_here('0') || accept_digits();
  if (accept_here('.')) valid = accept_digits() && valid;
  const bool exponent = accept_here('e') || accept_here('E');
  if (exponent) {
    static_cast<void>(accept_here('+') || accept_here('-'));
    valid = accept_digits() && valid;
  }
  const std::string_view number{begin, at_};
  if (!valid && number.empty()) return refuse_here("a value");
  if (!valid) return refuse(begin, "invalid number");
  if (is_strict() && (exponent || number.size() > kSurelyFinite) &&
      !std::isfinite(std::strtod(std::string{number}.c_str(), nullptr)))
    return refuse(begin, cat("number overflow: ", printable(number)));
  return true;
}

bool JsonParser::parse_literal(JsonNode& node, Kind kind, std::string_view literal) {
  if (!rest().starts_with(literal)) return refuse_here("a value");
  node.kind = kind;
  at_ += literal.size();
  return true;
}

}  // namespace

JsonPrefix parse_json_prefix(std::string_view text, const JsonBounds& bounds) {
  return JsonParser{text, bounds}.parse();
}

Result<JsonTree> parse_json_tree(std::string_view text, const JsonBounds& bounds) {
  JsonPrefix prefix = parse_json_prefix(text, bounds);
  if (prefix.error) return fail(std::move(*prefix.error));
  return std::move(prefix.tree);
}

}  // namespace podqos::codec
