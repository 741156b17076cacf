#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/codec/json_tree.h"

namespace podqos::ctl {

// Manifests are kept as JSON text, so that numbers, order and white space stay as the author wrote
// them: values are located by the tree, and replaced in the bytes, never printed again.

/// Maximum size of a manifest or batch line in bytes.
constexpr std::size_t kMaxInput = std::size_t{4} << 20U;

/// The tree of JSON text that parse_manifest(), insert_json() or codec::parse_json_tree() has
/// accepted or returned; null for any other text.
[[nodiscard]] codec::JsonTree json_tree(std::string_view text);

/// The value of `key`; of a repeated key the last, as Kubernetes' parser (encoding/json) takes it.
/// @return nullptr if the member is absent or null, or `object` is another value.
[[nodiscard]] const codec::JsonNode* json_member(const codec::JsonNode& object,
                                                 std::string_view key);
/// json_member() along a path, which has the indices of arrays in digits; nullptr if a step is
/// absent or null.
[[nodiscard]] const codec::JsonNode* json_at(const codec::JsonNode& object,
                                             std::span<const std::string> path);

/// A value for an error message on one line: strings decoded and in quotes, other values as they
/// are, both through printable().
[[nodiscard]] std::string json_shown(const codec::JsonNode& value);

/// `text` as a JSON string; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string json_quote(std::string_view text);

/// Names and values of members, all of them strings.
using StringMembers = std::vector<std::pair<std::string, std::string>>;

/// Members to be added to an object of a document, or whose values are to be replaced.
struct Insertion {
  std::vector<std::string> path;  ///< to the object: keys, and indices of arrays in digits
  StringMembers members;
};

/// A text that takes the place of another one.
struct TextEdit {
  std::size_t offset = 0;
  std::size_t length = 0;
  std::string text;
};
/// The text with all edits made, which must not overlap.
[[nodiscard]] std::string edited(std::string_view text, std::vector<TextEdit> edits);

/// JSON text as for json_tree() with members inserted: in front of the others, in the objects on
/// the path that are absent or null; all other bytes stay.
/// @return kInvalidArgument if a value on the path is not an object.
[[nodiscard]] Result<std::string> insert_json(std::string_view text,
                                              std::span<const Insertion> insertions);

}  // namespace podqos::ctl
