#pragma once

#include <cstddef>
#include <cstdint>
#include <forward_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"

namespace podqos::codec {

/// A value of JSON as strangers write it. The tree loses nothing: a number keeps its exact text
/// (but for -0, which is 0) and an object every member in order, equal keys included. The views
/// live as long as the tree and the text that it was made of.
struct JsonNode {
  enum class Kind : std::uint8_t { kNull, kBoolean, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  std::string_view key;   ///< name within the parent object
  std::string_view text;  ///< a string's value, a number's digits, a boolean's true or false
  std::vector<JsonNode> children;

  [[nodiscard]] bool is_null() const { return kind == Kind::kNull; }
  /// The member `name` of an object; nullptr when absent or null.
  /// @return kInvalidArgument, naming it, if the object has it twice.
  [[nodiscard]] Result<const JsonNode*> member(std::string_view name) const;
};

/// The whole of a text: its value, and those strings that are written otherwise there.
class JsonTree : public JsonNode {
 public:
  JsonTree() = default;
  JsonTree(const JsonTree&) = delete;
  JsonTree& operator=(const JsonTree&) = delete;
  JsonTree(JsonTree&&) noexcept = default;
  JsonTree& operator=(JsonTree&&) noexcept = default;
  ~JsonTree() = default;

  /// @return a view that lives as long as the tree, also after it has been moved.
  std::string_view keep(std::string text) { return kept_.emplace_front(std::move(text)); }

 private:
  std::forward_list<std::string> kept_;
};

/// "null", "boolean", "number", "string", "array" or "object".
[[nodiscard]] std::string_view format_kind(JsonNode::Kind kind);

/// kInvalidArgument with `why`.
[[nodiscard]] std::unexpected<Error> refuse_value(std::string why);
/// kInvalidArgument: "expected <expected>, found <kind of the node>".
[[nodiscard]] std::unexpected<Error> unexpected_kind(std::string_view expected,
                                                     const JsonNode& node);

enum class JsonComments : std::uint8_t { kRefuse, kIgnore };

struct JsonBounds {
  std::size_t bytes = std::size_t{1} << 20U;
  std::size_t depth = 64;
  JsonComments comments = JsonComments::kRefuse;  ///< kIgnore: // and /* */ are white space
};

/// @param text  outlives the tree.
/// @return kTooLarge beyond the bounds, kInvalidArgument, with the byte, for what is no JSON.
[[nodiscard]] Result<JsonTree> parse_json_tree(std::string_view text,
                                               const JsonBounds& bounds = {});

/// What a text holds in front of the first mistake.
struct JsonPrefix {
  JsonTree tree;  ///< with those members of an object, or elements, that were read to their end
  std::optional<Error> error;  ///< that of parse_json_tree; nullopt: the text is JSON
  std::string_view rest;       ///< of the text, with the word at which it was found to be wrong
};

/// As parse_json_tree, but keeps what was read when the text is not JSON.
[[nodiscard]] JsonPrefix parse_json_prefix(std::string_view text, const JsonBounds& bounds = {});

}  // namespace podqos::codec
