#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace podqos::codec {

/// JSON as strangers write it, read into a tree that loses nothing: a number keeps its exact text
/// (but for -0, which is 0) and an object every member in order, equal keys included.
struct JsonNode {
  enum class Kind : std::uint8_t { kNull, kBoolean, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  std::string key;   ///< name within the parent object
  std::string text;  ///< of a string its value, of a number its digits, of a boolean true or false
  std::vector<JsonNode> children;

  [[nodiscard]] bool is_null() const { return kind == Kind::kNull; }
  /// The member `name` of an object; nullptr when absent or null.
  /// @return kInvalidArgument, naming it, if the object has it twice.
  [[nodiscard]] Result<const JsonNode*> member(std::string_view name) const;
};

/// "null", "boolean", "number", "string", "array" or "object".
[[nodiscard]] std::string_view format_kind(JsonNode::Kind kind);

enum class JsonComments : std::uint8_t { kRefuse, kIgnore };

struct JsonBounds {
  std::size_t bytes = std::size_t{1} << 20U;
  std::size_t depth = 64;
  JsonComments comments = JsonComments::kRefuse;  ///< kIgnore: // and /* */ are white space
};

/// @return kTooLarge beyond the bounds, kInvalidArgument, with the byte, for what is no JSON.
[[nodiscard]] Result<JsonNode> parse_json_tree(std::string_view text,
                                               const JsonBounds& bounds = {});

}  // namespace podqos::codec
