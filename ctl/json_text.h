#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace podqos::ctl {

/// JSON kept as text, so that numbers, order and white space stay as their author wrote them:
/// values are found and replaced in the bytes, never parsed and printed again.
///
/// Everything but check_json expects text that check_json has accepted.
constexpr std::size_t kMaxInput = std::size_t{4} << 20U;
constexpr std::size_t kMaxDepth = 64;

/// @return kTooLarge beyond kMaxInput, kInvalidArgument for what nests deeper than kMaxDepth or is
///         no JSON, with the byte, counted from 1: sentences that want a subject in front.
[[nodiscard]] Status check_json(std::string_view text, std::size_t limit = kMaxInput);

/// A member of an object; both views point into the object's text.
struct JsonMember {
  std::string key;           ///< escapes decoded
  std::string_view raw_key;  ///< with its quotes
  std::string_view value;
};

/// The members in order; empty for an empty object and for what is no object.
[[nodiscard]] std::vector<JsonMember> json_members(std::string_view object);
/// The elements of an array; empty for what is no array.
[[nodiscard]] std::vector<std::string_view> json_elements(std::string_view array);
/// The value of `key`; of several the last, as Kubernetes' own parser does. null counts as absent.
[[nodiscard]] std::optional<std::string_view> json_member(std::string_view object,
                                                          std::string_view key);
/// json_member along a path of objects.
[[nodiscard]] std::optional<std::string_view> json_at(std::string_view object,
                                                      std::span<const std::string> path);
/// The decoded text of a JSON string; nullopt for every other value.
[[nodiscard]] std::optional<std::string> json_text_of(std::string_view value);

/// A value for an error message: a string in quotes, its content fit for one line; else the bytes.
[[nodiscard]] std::string json_shown(std::string_view value);

/// `text` as a JSON string; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string json_quote(std::string_view text);

/// `object` with the member `key` below `path` set to `value` (JSON text). Objects missing on the
/// way are made; all other bytes stay.
/// @return kInvalidArgument if something on the way is no object.
[[nodiscard]] Result<std::string> json_set(std::string_view object,
                                           std::span<const std::string> path, std::string_view key,
                                           std::string_view value);

}  // namespace podqos::ctl
