#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"
#include "common/codec/json_tree.h"

namespace podqos::ctl {

// A manifest stays as its author wrote it: its values are located by a tree and replaced in the
// bytes, never printed again. Paths in it have the names of members and the indices of arrays,
// separated by dots: "items.0.metadata".

/// Maximum size of a manifest or batch line in bytes.
constexpr std::size_t kMaxInput = std::size_t{4} << 20U;

/// A path followed by another one; either may be empty.
[[nodiscard]] std::string path_in(std::string_view path, std::string_view rest);

/// The value of `key`; of a repeated key the last, as Kubernetes' parser (encoding/json) takes it.
/// @return nullptr if the member is absent or null, or `object` is another value.
[[nodiscard]] const codec::JsonNode* json_member(const codec::JsonNode& object,
                                                 std::string_view key);
/// json_member() along a path; nullptr if a step is absent or null.
[[nodiscard]] const codec::JsonNode* json_at(const codec::JsonNode& root, std::string_view path);

/// A value for an error message on one line: strings decoded and in quotes, other values as they
/// are, both through printable().
[[nodiscard]] std::string json_shown(const codec::JsonNode& value);

/// `text` as a JSON string; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string json_quote(std::string_view text);

/// Names and values of members, all of them strings.
using StringMembers = std::vector<std::pair<std::string, std::string>>;

/// Members to be added to an object of a document, or whose values are to be replaced.
struct Insertion {
  std::string path;  ///< of the object
  StringMembers members;
};

/// What a document is written in.
enum class Syntax : std::uint8_t { kJson, kYaml };

/// The document with members inserted: in front of the others, in the objects on the path that are
/// absent or null; all other bytes stay.
/// @param root  of the tree of `text`
/// @return kInvalidArgument if a value on the path is not an object, or in YAML shares the line of
///         its first member with something else. What an alias or a merge key stands for is changed
///         where it is written, which is for the caller to find out.
[[nodiscard]] Result<std::string> insert_members(std::string_view text, const codec::JsonNode& root,
                                                 std::span<const Insertion> insertions,
                                                 Syntax syntax);

/// The members as lines of YAML, each with its indentation.
[[nodiscard]] std::string format_members(const StringMembers& members, std::string_view indent);

}  // namespace podqos::ctl
