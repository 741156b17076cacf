#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/codec/json_tree.h"

namespace podqos::ctl {

// Manifests are kept as JSON text, so that numbers, order and white space stay as the author wrote
// them: values are located by the tree, and replaced in the bytes, never printed again.

/// Maximum size of a manifest or batch line in bytes.
constexpr std::size_t kMaxInput = std::size_t{4} << 20U;

/// The tree of JSON text that parse_manifest(), json_set() or codec::parse_json_tree() has accepted
/// or returned; null for any other text.
[[nodiscard]] codec::JsonTree json_tree(std::string_view text);

/// The elements of an array; none for any other value and for nullptr.
[[nodiscard]] std::span<const codec::JsonNode> json_elements(const codec::JsonNode* array);
/// The value of `key`; of a repeated key the last, as Kubernetes' parser (encoding/json) takes it.
/// @return nullptr if the member is absent or null, or `object` is another value.
[[nodiscard]] const codec::JsonNode* json_member(const codec::JsonNode& object,
                                                 std::string_view key);
/// json_member() along a path of objects; nullptr if one on the path is absent.
[[nodiscard]] const codec::JsonNode* json_at(const codec::JsonNode& object,
                                             std::span<const std::string> path);

/// A value for an error message on one line: strings decoded and in quotes, other values as they
/// are, both through printable().
[[nodiscard]] std::string json_shown(const codec::JsonNode& value);

/// `text` as a JSON string; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string json_quote(std::string_view text);

/// `object` with the member `key` below `path` set to `value`, both JSON text as for json_tree().
/// Objects missing on the path are created; all other bytes stay.
/// @return kInvalidArgument if a value on the path is not an object.
[[nodiscard]] Result<std::string> json_set(std::string_view object,
                                           std::span<const std::string> path, std::string_view key,
                                           std::string_view value);

}  // namespace podqos::ctl
