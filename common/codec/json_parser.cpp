#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <ranges>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/codec/json_text.h"
#include "common/codec/json_tree.h"

namespace podqos::codec {

namespace {

using Kind = JsonNode::Kind;

/// Most objects written by podqos, with what is nested in them, have no more members.
constexpr std::size_t kUsualPending = 64;

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

constexpr bool is_json_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/// Appends a code point that is not a surrogate as UTF-8; RFC 3629, section 3.
void append_utf8(std::string& out, unsigned code) {
  const auto append = [&](unsigned byte) { out += static_cast<char>(byte); };
  const auto append_rest = [&](unsigned bits) { append(0x80U | (bits & 0x3fU)); };
  if (code < 0x80) return append(code);
  if (code < 0x800) {
    append(0xc0U | code >> 6U);
  } else if (code < 0x10000) {
    append(0xe0U | code >> 12U);
    append_rest(code >> 6U);
  } else {
    append(0xf0U | code >> 18U);
    append_rest(code >> 12U);
    append_rest(code >> 6U);
  }
  append_rest(code);
}

/// A recursive descent over a text; RFC 8259. When a function returns false, the descent ends: the
/// error tells why.
class JsonParser {
 public:
  JsonParser(std::string_view text, const JsonBounds& bounds)
      : text_(text),
        at_(text.data()),
        end_(at_ + text.size()),
        bounds_(bounds),
        left_(bounds.values) {}

  JsonPrefix parse() {
    // Programs in C take it for the end of the text, also in a comment.
    if (const std::size_t nul = text_.find('\0'); nul != std::string_view::npos) {
      refuse(at_ + nul, "NUL byte");
      return {.tree = {}, .error = std::move(error_), .rest = text_};
    }
    pending_.reserve(kUsualPending);
    if (rest().starts_with(kByteOrderMark)) at_ += kByteOrderMark.size();
    skip_space();
    if (parse_value(tree_)) {
      skip_space();
      if (at_ != end_) refuse_here("the end of the text");
    }
    if (!error_) return {.tree = std::move(tree_), .error = {}, .rest = {}};
    const bool any = !tree_.children.empty();
    const std::string_view rest{any ? tree_.children.back().raw.end() : text_.begin(), end_};
    return {.tree = std::move(tree_), .error = std::move(error_), .rest = rest};
  }

 private:
  [[nodiscard]] std::string_view rest() const { return {at_, end_}; }

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

  [[nodiscard]] std::string position(const char* at) const {
    return format_position(text_, static_cast<std::size_t>(at - text_.data()));
  }
  /// @param at  where the text is malformed
  bool refuse(const char* at, std::string_view why) {
    error_ = {.code = ErrorCode::kInvalidArgument,
              .message = cat("malformed JSON at ", position(at), ": ", why)};
    return false;
  }
  bool refuse_here(std::string_view expected) {
    const std::string found = at_ == end_ ? "the end" : cat("\"", printable({at_, 1}), "\"");
    return refuse(at_, cat("expected ", expected, ", found ", found));
  }
  bool refuse_bound(std::string_view why) {
    error_ = {.code = ErrorCode::kTooLarge, .message = cat(why, " at ", position(at_))};
    return false;
  }

  bool parse_value(JsonNode& node);
  bool parse_container(JsonNode& container, char end);
  bool parse_child(const JsonNode& parent);
  [[nodiscard]] std::string path_of(const JsonNode& child) const;
  bool parse_string(std::string_view& value);
  bool parse_escape(std::string& out);
  std::optional<unsigned> parse_unit();
  bool parse_number();
  bool parse_literal(std::string_view literal);

  std::string_view text_;
  const char* at_;
  const char* end_;
  const JsonBounds& bounds_;
  JsonTree tree_;
  std::size_t left_;                   ///< values that may still be stored
  bool storing_ = true;                ///< false within a member that is not read
  std::vector<const JsonNode*> open_;  ///< the containers that are being parsed, outermost first
  /// The children so far of each of them, the innermost one's last. They get their place in the
  /// tree when their number is known.
  std::vector<JsonNode> pending_;
  std::optional<Error> error_;
};

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
    case '"':
      node.kind = Kind::kString;
      parsed = parse_string(node.text);
      break;
    case '{':
      node.kind = Kind::kObject;
      parsed = parse_container(node, '}');
      break;
    case '[':
      node.kind = Kind::kArray;
      parsed = parse_container(node, ']');
      break;
    case 't':
      node.kind = Kind::kBoolean;
      parsed = parse_literal("true");
      break;
    case 'f':
      node.kind = Kind::kBoolean;
      parsed = parse_literal("false");
      break;
    case 'n': parsed = parse_literal("null"); break;
    default: node.kind = Kind::kNumber; parsed = parse_number();
  }
  if (!parsed) return false;
  node.raw = {begin, at_};
  if (node.kind == Kind::kNumber || node.kind == Kind::kBoolean) node.text = node.raw;
  return true;
}

/// Parses an object or array. Before an error, it gets the children that are complete.
bool JsonParser::parse_container(JsonNode& container, char end) {
  if (open_.size() == bounds_.depth)
    return refuse_bound(cat("JSON nested deeper than ", bounds_.depth, " levels"));
  ++at_;
  open_.push_back(&container);
  const std::size_t first = pending_.size();
  bool parsed = accept(end);
  if (!parsed) {
    do
      parsed = parse_child(container);
    while (parsed && accept(','));
    parsed =
        parsed && (accept(end) || refuse_here(cat("\",\" or \"", std::string_view{&end, 1}, "\"")));
  }
  const auto begin = pending_.begin() + static_cast<std::ptrdiff_t>(first);
  container.children.assign(std::make_move_iterator(begin),
                            std::make_move_iterator(pending_.end()));
  pending_.erase(begin, pending_.end());
  open_.pop_back();
  return parsed;
}

/// Parses a member or an element, and stores it if it is read.
bool JsonParser::parse_child(const JsonNode& parent) {
  JsonNode child;
  skip_space();
  if (parent.kind == Kind::kObject) {
    const char* const begin = at_;
    if (!rest().starts_with('"')) return refuse_here("the name of a member");
    if (!parse_string(child.key)) return false;
    child.raw_key = {begin, at_};
    if (!accept(':')) return refuse_here("\":\"");
    skip_space();
  }
  const bool stored = storing_;
  if (stored && left_-- == 0)
    return refuse_bound(cat("JSON with more than ", bounds_.values,
                            " values that are read: ", printable(path_of(child))));
  const bool container = rest().starts_with('{') || rest().starts_with('[');
  if (parent.kind == Kind::kObject && container)
    storing_ = stored && bounds_.reads(parent.key, child.key);
  const bool parsed = parse_value(child);
  storing_ = stored;
  if (parsed && stored) pending_.push_back(std::move(child));
  return parsed;
}

/// The path of a value in the innermost container: "hooks.prestart[].path".
std::string JsonParser::path_of(const JsonNode& child) const {
  std::string path;
  const auto append = [&](const JsonNode& node) {
    path += node.raw_key.empty() ? "[]" : cat(path.empty() ? "" : ".", node.key);
  };
  for (const JsonNode* node : open_ | std::views::drop(1))
    append(*node);
  append(child);
  return path;
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
    } else {
      const std::size_t length = utf8_length(rest());
      if (length == 0) return refuse(begin, "string that is not UTF-8");
      at_ += length;
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
    const auto low = code < kLow ? parse_unit() : std::nullopt;
    if (!low || *low < kLow || *low >= kEndOfLow) return false;
    code = 0x10000 + ((code - kHigh) << 10U) + (*low - kLow);
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
  if ((exponent || number.size() > kSurelyFinite) &&
      !std::isfinite(std::strtod(std::string{number}.c_str(), nullptr)))
    return refuse(begin, cat("number overflow: ", printable(number)));
  return true;
}

bool JsonParser::parse_literal(std::string_view literal) {
  if (!rest().starts_with(literal)) return refuse_here("a value");
  at_ += literal.size();
  return true;
}

}  // namespace

JsonPrefix parse_json_prefix(std::string_view text, const JsonBounds& bounds) {
  if (text.size() > bounds.bytes) {
    return {.tree = {},
            .error = Error{.code = ErrorCode::kTooLarge,
                           .message = cat("JSON of ", text.size(), " bytes, at most ", bounds.bytes,
                                          " are read")},
            .rest = text};
  }
  return JsonParser{text, bounds}.parse();
}

Result<JsonTree> parse_json_tree(std::string_view text, const JsonBounds& bounds) {
  JsonPrefix prefix = parse_json_prefix(text, bounds);
  if (prefix.error) return fail(std::move(*prefix.error));
  return std::move(prefix.tree);
}

}  // namespace podqos::codec
