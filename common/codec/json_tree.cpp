#include "common/codec/json_tree.h"

#include <algorithm>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/codec/json_plain.h"

namespace podqos::codec {

namespace {

using nlohmann::json;

/// Builds the tree from the parser's events; returning false stops the parser.
class TreeBuilder : public nlohmann::json_sax<json> {
 public:
  explicit TreeBuilder(std::size_t max_depth) : max_depth_(max_depth) {}

  bool null() override { return add(JsonNode::Kind::kNull, {}); }
  bool boolean(bool value) override {
    return add(JsonNode::Kind::kBoolean, value ? "true" : "false");
  }
  bool number_integer(number_integer_t value) override {
    return add(JsonNode::Kind::kNumber, keep(std::to_string(value)));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return add(JsonNode::Kind::kNumber, keep(std::to_string(value)));
  }
  bool number_float(number_float_t /*value*/, const string_t& digits) override {
    return add(JsonNode::Kind::kNumber, keep(digits));
  }
  bool string(string_t& value) override {
    return add(JsonNode::Kind::kString, keep(std::move(value)));
  }
  bool binary(binary_t& /*value*/) override { return false; }
  bool start_object(std::size_t /*elements*/) override { return open(JsonNode::Kind::kObject); }
  bool key(string_t& name) override {
    key_ = keep(std::move(name));
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t /*elements*/) override { return open(JsonNode::Kind::kArray); }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string& token,
                   const json::exception& /*cause*/) override {
    // The parser's position is after the invalid token.
    sound_bytes_ = position - std::min(position, token.size());
    error_ = Error{.code = ErrorCode::kInvalidArgument,
                   .message = cat("not JSON: syntax error at byte ", position)};
    return false;
  }

  JsonPrefix release(bool complete, std::string_view text) && {
    if (complete) return {.tree = std::move(tree_), .error = {}, .rest = {}};
    // The member that contains the error is incomplete.
    if (open_.size() > 1) tree_.children.pop_back();
    return {.tree = std::move(tree_),
            .error = std::move(error_),
            .rest = text.substr(std::min(sound_bytes_, text.size()))};
  }

 private:
  bool add(JsonNode::Kind kind, std::string_view text) {
    place(kind).text = text;
    return true;
  }
  std::string_view keep(std::string text) { return tree_.keep(std::move(text)); }

  bool open(JsonNode::Kind kind) {
    if (open_.size() == max_depth_) {
      error_ = Error{.code = ErrorCode::kTooLarge,
                     .message = cat("JSON nested deeper than ", max_depth_)};
      return false;
    }
    constexpr std::size_t kUsualChildren = 8;
    JsonNode& node = place(kind);
    node.children.reserve(kUsualChildren);
    open_.push_back(&node);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  /// Adds a value to the innermost open container. A parent gets no child while one of its children
  /// is open, so that the pointers in open_ stay valid.
  JsonNode& place(JsonNode::Kind kind) {
    JsonNode& node = open_.empty() ? tree_ : open_.back()->children.emplace_back();
    node.kind = kind;
    node.key = std::exchange(key_, {});
    return node;
  }

  std::size_t max_depth_;
  JsonTree tree_;
  std::vector<JsonNode*> open_;
  std::string_view key_;
  Error error_;
  std::size_t sound_bytes_ = 0;  ///< bytes before the invalid token
};

/// The text was not parsed at all.
JsonPrefix refused(ErrorCode code, std::string message, std::string_view text) {
  return {.tree = {}, .error = Error{.code = code, .message = std::move(message)}, .rest = text};
}

}  // namespace

Result<const JsonNode*> JsonNode::member(std::string_view name) const {
  const JsonNode* found = nullptr;
  bool seen = false;
  for (const JsonNode& child : children) {
    if (child.key != name) continue;
    if (seen) return fail(ErrorCode::kInvalidArgument, cat(name, " is repeated"));
    seen = true;
    found = child.is_null() ? nullptr : &child;
  }
  return found;
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
    return refused(ErrorCode::kTooLarge,
                   cat("JSON of ", text.size(), " bytes, at most ", bounds.bytes, " are read"),
                   text);
  }
  // nlohmann's lexer takes a NUL as the end of the text and ignores what follows.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return refused(ErrorCode::kInvalidArgument,
                   cat("not JSON: syntax error at byte ", nul + 1, ", a NUL"), text);
  }
  // The fast path; it fails for any text that the full parser might treat differently.
  if (auto plain = plain_tree(text, bounds.depth))
    return {.tree = std::move(*plain), .error = {}, .rest = {}};
  TreeBuilder builder{bounds.depth};
  const bool complete =
      json::sax_parse(text.begin(), text.end(), &builder, json::input_format_t::json, true,
                      bounds.comments == JsonComments::kIgnore);
  return std::move(builder).release(complete, text);
}

Result<JsonTree> parse_json_tree(std::string_view text, const JsonBounds& bounds) {
  JsonPrefix prefix = parse_json_prefix(text, bounds);
  if (prefix.error) return fail(std::move(*prefix.error));
  return std::move(prefix.tree);
}

}  // namespace podqos::codec
