#include "common/codec/json_tree.h"

#include <algorithm>
#include <ranges>

#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/codec/json_plain.h"

namespace podqos::codec {

namespace {

using nlohmann::json;

/// White space, separators and the byte order mark: what stands between the tokens of valid JSON,
/// apart from comments.
constexpr std::string_view kBetweenTokens = " \t\r\n,:\xef\xbb\xbf";

/// An error of the syntax at a byte of the text.
Error syntax_error(std::string_view text, std::size_t offset, std::string_view reason) {
  return {.code = ErrorCode::kInvalidArgument,
          .message = cat("malformed JSON at ", format_position(text, offset), ": ", reason)};
}

/// Builds the tree from the parser's events; returning false stops the parser. The parser does not
/// tell where a value is: the builder finds its token behind the one before, which is simple in
/// text that the parser has accepted.
class TreeBuilder : public nlohmann::json_sax<json> {
 public:
  TreeBuilder(std::string_view text, const JsonBounds& bounds)
      : text_(text), bounds_(bounds), left_(bounds.values) {}

  bool null() override {
    return place(JsonNode::Kind::kNull, std::string_view{"null"}.size()) != nullptr;
  }
  bool boolean(bool value) override {
    return add_verbatim(JsonNode::Kind::kBoolean, value ? "true" : "false");
  }
  bool number_integer(number_integer_t value) override {
    return add_verbatim(JsonNode::Kind::kNumber, value == 0 ? "-0" : std::to_string(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return add_verbatim(JsonNode::Kind::kNumber, std::to_string(value));
  }
  bool number_float(number_float_t /*value*/, const string_t& digits) override {
    return add_verbatim(JsonNode::Kind::kNumber, digits);
  }
  bool string(string_t& value) override {
    JsonNode* const node = place(JsonNode::Kind::kString);
    if (node != nullptr) node->text = keep(value);
    return node != nullptr;
  }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*elements*/) override { return open(JsonNode::Kind::kObject); }
  bool key(string_t& name) override {
    key_ = keep(name);
    raw_key_ = next_token();
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*elements*/) override { return open(JsonNode::Kind::kArray); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const json::exception& cause) override {
    // The parser's position is after the invalid token, and also counts the end of the text. The
    // token begins before it, unless a comment does.
    std::size_t offset = std::min(position - 1, text_.size());
    const std::size_t begin = text_.find_first_not_of(kBetweenTokens, at_);
    if (begin < offset && text_[begin] != '/') offset = begin;
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error …"
    std::string_view reason = cause.what();
    for (const std::string_view before : {"] ", ": "}) {
      if (const std::size_t at = reason.find(before); at != std::string_view::npos)
        reason.remove_prefix(at + before.size());
    }
    error_ = syntax_error(text_, offset, printable(reason, 200));
    return false;
  }

  JsonPrefix release(bool complete) && {
    if (complete) return {.tree = std::move(tree_), .error = {}, .rest = {}};
    // The member that contains the error is incomplete.
    if (open_.size() > 1) tree_.children.pop_back();
    std::string_view rest = text_;
    if (!tree_.children.empty()) {
      const std::string_view last = tree_.children.back().raw;
      rest = {last.end(), text_.end()};
    }
    return {.tree = std::move(tree_), .error = std::move(error_), .rest = rest};
  }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  /// The token of the event, after those before it.
  /// @param length  of a literal or number, which may stand before invalid text; else not used
  std::string_view next_token(std::size_t length = 1) {
    std::size_t begin = text_.find_first_not_of(kBetweenTokens, at_);
    while (text_[begin] == '/') {
      const bool line = text_[begin + 1] == '/';
      const std::size_t end =
          line ? text_.find_first_of("\r\n", begin) : text_.find("*/", begin + 2) + 2;
      begin = text_.find_first_not_of(kBetweenTokens, end);
    }
    at_ = begin + length;
    if (text_[begin] == '"') {
      while (text_[at_] != '"')
        at_ += text_[at_] == '\\' ? std::size_t{2} : std::size_t{1};
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  /// Whether the values that come next are read; see JsonBounds::is_read.
  [[nodiscard]] bool storing() const { return open_.size() < first_unread_; }
  std::string_view keep(std::string& text) {
    return storing() ? tree_.keep(std::move(text)) : std::string_view{};
  }

  /// @param token  as long as it is in the text
  bool add_verbatim(JsonNode::Kind kind, std::string_view token) {
    JsonNode* const node = place(kind, token.size());
    if (node != nullptr) node->text = node->raw;
    return node != nullptr;
  }

  bool open(JsonNode::Kind kind) {
    if (open_.size() == bounds_.depth) {
      error_ = Error{.code = ErrorCode::kTooLarge,
                     .message = cat("JSON nested deeper than ", bounds_.depth, " levels at ",
                                    format_position(text_, next_token()))};
      return false;
    }
    const bool stored = storing();
    JsonNode* const node = place(kind);
    if (node == nullptr) return false;
    if (stored && !node->raw_key.empty() && !bounds_.reads(open_.back()->key, node->key))
      first_unread_ = open_.size() + 1;
    open_.push_back(node);
    return true;
  }

  bool close() {
    JsonNode& node = *open_.back();
    const std::string_view bracket = next_token();
    node.raw = {node.raw.begin(), bracket.end()};
    open_.pop_back();
    if (open_.size() < first_unread_) first_unread_ = kNone;
    return true;
  }

  /// Adds a value to the innermost open container. A parent gets no child while one of its children
  /// is open, so that the pointers in open_ stay valid.
  /// @return nullptr, with the error set, if it would be one too many.
  JsonNode* place(JsonNode::Kind kind, std::size_t length = 1) {
    const bool child = !open_.empty() && storing();
    if (child && left_ == 0) {
      error_ = too_many_values();
      return nullptr;
    }
    left_ -= child ? 1U : 0U;
    JsonNode& node = open_.empty() ? tree_
                     : child       ? open_.back()->children.emplace_back()
                                   : unread_;
    node.kind = kind;
    node.key = std::exchange(key_, {});
    node.raw_key = std::exchange(raw_key_, {});
    node.raw = next_token(length);
    return &node;
  }

  /// The error of the value that comes next, with its path: "hooks.prestart[].path".
  Error too_many_values() {
    std::string path;
    const auto append = [&](std::string_view raw_key, std::string_view key) {
      path += raw_key.empty() ? "[]" : cat(path.empty() ? "" : ".", key);
    };
    for (const JsonNode* node : open_ | std::views::drop(1))
      append(node->raw_key, node->key);
    append(raw_key_, key_);
    return {.code = ErrorCode::kTooLarge,
            .message = cat("JSON with more than ", bounds_.values, " values that are read: ",
                           printable(path), " at ", format_position(text_, next_token()))};
  }

  std::string_view text_;
  const JsonBounds& bounds_;
  JsonTree tree_;
  std::vector<JsonNode*> open_;
  JsonNode unread_;                   ///< takes the values that are not read
  std::size_t first_unread_ = kNone;  ///< size of open_ in a member that is not read
  std::string_view key_;
  std::string_view raw_key_;
  Error error_;
  std::size_t at_ = 0;  ///< after the last token
  std::size_t left_;    ///< values that may still be stored
};

/// Removes the first character, folded as Unicode does it to a lower case letter if it is one.
char take_folded(std::string_view& name) {
  // The only characters beside capitals that fold to ASCII letters.
  constexpr std::string_view kLongS = "\xc5\xbf";
  constexpr std::string_view kKelvin = "\xe2\x84\xaa";
  for (const auto& [text, letter] : {std::pair{kLongS, 's'}, std::pair{kKelvin, 'k'}}) {
    if (!name.starts_with(text)) continue;
    name.remove_prefix(text.size());
    return letter;
  }
  const char c = name.front();
  name.remove_prefix(1);
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

bool is_named(std::string_view key, std::string_view name, MemberNames names) {
  if (key == name || names == MemberNames::kExact) return key == name;
  while (!key.empty() && !name.empty()) {
    if (take_folded(key) != take_folded(name)) return false;
  }
  return key.empty() && name.empty();
}

const JsonNode* JsonNode::find(std::string_view name, MemberNames names) const {
  const JsonNode* found = nullptr;
  for (const JsonNode& member : children) {
    if (!is_named(member.key, name, names)) continue;
    if (found != nullptr) return nullptr;
    found = &member;
  }
  return found;
}

std::string format_position(std::string_view text, std::size_t offset) {
  if (!text.contains('\n')) return cat("byte ", offset + 1);
  const std::string_view before = text.substr(0, offset);
  const std::size_t line = before.rfind('\n') + 1;  // npos + 1 is 0
  const auto columns = std::ranges::count_if(
      before.substr(line), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80; });
  return cat("line ", std::ranges::count(before, '\n') + 1, ", column ", columns + 1);
}

std::string format_position(std::string_view text, std::string_view part) {
  return format_position(text, static_cast<std::size_t>(part.data() - text.data()));
}

std::string_view format_kind(JsonNode::Kind kind) {
  switch (kind) {
    case JsonNode::Kind::kNull: return "null";
    case JsonNode::Kind::kBoolean: return "boolean";
    case JsonNode::Kind::kNumber: return "number";
    case JsonNode::Kind::kString: return "string";
    case JsonNode::Kind::kArray: return "array";
    case JsonNode::Kind::kObject: return "object";
  }
  return "null";
}

std::unexpected<Error> refuse_value(std::string why) {
  return fail(ErrorCode::kInvalidArgument, std::move(why));
}

std::unexpected<Error> unexpected_kind(std::string_view expected, const JsonNode& node) {
  return refuse_value(cat("expected ", expected, ", found ", format_kind(node.kind)));
}

JsonPrefix parse_json_prefix(std::string_view text, const JsonBounds& bounds) {
  if (text.size() > bounds.bytes) {
    return {.tree = {},
            .error = Error{.code = ErrorCode::kTooLarge,
                           .message = cat("JSON of ", text.size(), " bytes, at most ", bounds.bytes,
                                          " are read")},
            .rest = text};
  }
  // nlohmann's lexer takes a NUL as the end of the text and ignores what follows.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos)
    return {.tree = {}, .error = syntax_error(text, nul, "NUL byte"), .rest = text};
  // The fast path; it fails for any text that the full parser might treat differently.
  if (auto plain = plain_tree(text, bounds))
    return {.tree = std::move(*plain), .error = {}, .rest = {}};
  TreeBuilder builder{text, bounds};
  const bool complete =
      json::sax_parse(text.begin(), text.end(), &builder, json::input_format_t::json, true,
                      bounds.comments == JsonComments::kIgnore);
  return std::move(builder).release(complete);
}

Result<JsonTree> parse_json_tree(std::string_view text, const JsonBounds& bounds) {
  JsonPrefix prefix = parse_json_prefix(text, bounds);
  if (prefix.error) return fail(std::move(*prefix.error));
  return std::move(prefix.tree);
}

}  // namespace podqos::codec
