#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/codec/json_tree.h"
#include "ctl/cli/json.h"

namespace podqos::ctl {

// A manifest stays as its author wrote it: its values are located by a tree and replaced in the
// bytes, never printed again. Paths in it have the names of members and the indices of arrays,
// separated by dots: "items.0.metadata".

/// Maximum size of a manifest or batch line in bytes.
constexpr std::size_t kMaxInput = std::size_t{4} << 20U;

/// A document of a manifest, or a config.json.
struct Document {
  std::string_view text;  ///< as its author wrote it, in YAML with its "---" line
  codec::JsonTree tree;   ///< null for a document that only has comments
  bool is_yaml = false;
};

/// Splits a stream of YAML into documents and reads each as the JSON value that it stands for.
/// JsonNode::raw is the value in the YAML text, of an alias the alias. Quantities keep their exact
/// text: numbers stay digit by digit, but in base ten. They, and YAML 1.1's words for true, false
/// and null, are what Kubernetes' parser takes for them (sigs.k8s.io/yaml). All other scalars are
/// strings.
/// @param text  must outlive the documents
/// @return kTooLarge beyond kMaxInput bytes, codec::kMaxJsonDepth levels, or codec::kMaxJsonValues
///         values that aliases of all documents stand for; kInvalidArgument for text that is not
///         YAML, and for a map that repeats a key. All but the first name the line.
[[nodiscard]] Result<std::vector<Document>> parse_yaml(std::string_view text);

/// A path followed by another one; either may be empty.
[[nodiscard]] std::string path_in(std::string_view path, std::string_view rest);
/// The value at a path; of a repeated key the last, as Kubernetes' parser (encoding/json) takes it.
/// @return nullptr if it is absent or null
[[nodiscard]] const codec::JsonNode* json_at(const codec::JsonNode& root, std::string_view path);
/// A value for an error message on one line: strings decoded and in quotes, other values as they
/// are, both through printable().
[[nodiscard]] std::string json_shown(const codec::JsonNode& value);

/// Members to be added to an object of a document, or whose values are to be replaced.
struct Insertion {
  std::string path;  ///< of the object
  Json members;      ///< an object of strings
};

/// The text of a document with members inserted: in front of the others, in the objects on the path
/// that are absent or null; all other bytes stay.
/// @return kInvalidArgument if a value on the path is not an object. Of YAML also if no line can be
///         inserted, or if that changed anything else: an object is an alias, merged or empty, or a
///         value has several lines.
[[nodiscard]] Result<std::string> insert_members(const Document& document,
                                                 std::span<const Insertion> insertions);

/// The members as lines of YAML, each with its indentation.
[[nodiscard]] std::string format_members(const Json& members, std::string_view indent);

}  // namespace podqos::ctl
