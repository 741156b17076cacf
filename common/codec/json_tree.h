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

/// A JSON value from untrusted input. The tree is lossless: numbers keep their exact text (except
/// -0, which becomes 0), and objects keep all members in order, duplicates included. Views are
/// valid as long as the tree and the text it was parsed from.
struct JsonNode {
  enum class Kind : std::uint8_t { kNull, kBoolean, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  std::string_view key;   ///< name in the parent object
  std::string_view text;  ///< value of a string, digits of a number, "true" or "false"
  /// Members of an object or elements of an array, in order.
  std::vector<JsonNode> children;

  /// Whether the value is the literal null.
  [[nodiscard]] bool is_null() const { return kind == Kind::kNull; }
  /// The member `name` of an object; nullptr if it is absent or null.
  /// @return kInvalidArgument, naming the member, if it is repeated.
  [[nodiscard]] Result<const JsonNode*> member(std::string_view name) const;
};

/// The tree of a whole text, and the strings of it that are not stored verbatim there (escapes).
class JsonTree : public JsonNode {
 public:
  JsonTree() = default;
  JsonTree(const JsonTree&) = delete;
  JsonTree& operator=(const JsonTree&) = delete;
  JsonTree(JsonTree&&) noexcept = default;
  JsonTree& operator=(JsonTree&&) noexcept = default;
  ~JsonTree() = default;

  /// Stores a string.
  /// @return a view that is valid as long as the tree, also after a move.
  std::string_view keep(std::string text) { return kept_.emplace_front(std::move(text)); }

 private:
  std::forward_list<std::string> kept_;
};

/// "null", "boolean", "number", "string", "array" or "object".
[[nodiscard]] std::string_view format_kind(JsonNode::Kind kind);

/// An error of code kInvalidArgument with the message `why`.
[[nodiscard]] std::unexpected<Error> refuse_value(std::string why);
/// kInvalidArgument: "expected <expected>, found <kind of the node>".
[[nodiscard]] std::unexpected<Error> unexpected_kind(std::string_view expected,
                                                     const JsonNode& node);

/// Whether comments are an error or white space.
enum class JsonComments : std::uint8_t { kRefuse, kIgnore };

/// Limits of the parser.
struct JsonBounds {
  /// Length of the text; nesting of objects and arrays.
  std::size_t bytes = std::size_t{1} << 20U;
  std::size_t depth = 64;
  JsonComments comments = JsonComments::kRefuse;  ///< kIgnore accepts // and /* */
};

/// Parses a text.
/// @param text  must outlive the tree
/// @return kTooLarge beyond the bounds, kInvalidArgument with the byte position for invalid JSON.
[[nodiscard]] Result<JsonTree> parse_json_tree(std::string_view text,
                                               const JsonBounds& bounds = {});

/// What was read of a text before its first syntax error.
struct JsonPrefix {
  JsonTree tree;               ///< complete members and elements only
  std::optional<Error> error;  ///< as parse_json_tree(); nullopt if the text is JSON
  std::string_view rest;       ///< remaining text, from the token at which the error was found
};

/// As parse_json_tree(), but keeps what was read before a syntax error.
[[nodiscard]] JsonPrefix parse_json_prefix(std::string_view text, const JsonBounds& bounds = {});

}  // namespace podqos::codec
