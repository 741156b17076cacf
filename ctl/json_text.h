#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace podqos::ctl {

// JSON kept as text, so that numbers, order and white space stay as the author wrote them: values
// are located and replaced in the bytes, never parsed and printed again.
//
// All functions but check_json() expect text that check_json() has accepted.

/// Maximum size of a manifest or batch line in bytes.
constexpr std::size_t kMaxInput = std::size_t{4} << 20U;
/// Maximum nesting of objects and arrays; functions that recurse rely on it.
constexpr std::size_t kMaxDepth = 64;

/// Checks that `text` is JSON (RFC 8259) within the bounds.
/// @param limit  maximum size in bytes
/// @return kTooLarge beyond `limit`; kInvalidArgument for text that nests deeper than kMaxDepth or
///         is not JSON, with the offset of the error counted from 1. The messages have no subject:
///         the caller puts one in front.
[[nodiscard]] Status check_json(std::string_view text, std::size_t limit = kMaxInput);

/// A member of an object; both views point into the object's text.
struct JsonMember {
  std::string key;           ///< escapes decoded
  std::string_view raw_key;  ///< with its quotes
  std::string_view value;    ///< JSON text, without white space around it
};

/// The members of an object in order; empty for an empty object and for any other value.
[[nodiscard]] std::vector<JsonMember> json_members(std::string_view object);
/// The elements of an array in order; empty for an empty array and for any other value.
[[nodiscard]] std::vector<std::string_view> json_elements(std::string_view array);
/// The value of `key`; of a repeated key the last, as Kubernetes' parser (encoding/json) takes it.
/// @return nullopt if the member is absent or null.
[[nodiscard]] std::optional<std::string_view> json_member(std::string_view object,
                                                          std::string_view key);
/// json_member() along a path of objects; nullopt if one on the path is absent.
[[nodiscard]] std::optional<std::string_view> json_at(std::string_view object,
                                                      std::span<const std::string> path);
/// The decoded text of a JSON string; nullopt for any other value.
[[nodiscard]] std::optional<std::string> json_text_of(std::string_view value);

/// A value for an error message on one line: strings decoded and in quotes, other values as they
/// are, both through printable().
[[nodiscard]] std::string json_shown(std::string_view value);

/// `text` as a JSON string; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string json_quote(std::string_view text);

/// `object` with the member `key` below `path` set to `value` (JSON text). Objects missing on the
/// path are created; all other bytes stay.
/// @return kInvalidArgument if a value on the path is not an object.
[[nodiscard]] Result<std::string> json_set(std::string_view object,
                                           std::span<const std::string> path, std::string_view key,
                                           std::string_view value);

}  // namespace podqos::ctl
