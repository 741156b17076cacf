#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/codec/json_tree.h"
#include "ctl/json_text.h"

namespace podqos::ctl {

/// A document of a manifest.
struct Document {
  std::string_view text;  ///< as its author wrote it, in YAML with its "---" line
  codec::JsonTree tree;   ///< null for a document that only has comments
};

/// Splits a stream of YAML into documents and reads each as the JSON value that it stands for.
/// JsonNode::raw is the value in the YAML text, of an alias the alias. Quantities keep their exact
/// text: numbers stay digit by digit, but in base ten. They, and YAML 1.1's words for true, false
/// and null, are what Kubernetes' parser takes for them (sigs.k8s.io/yaml). All other scalars are
/// strings.
/// @param text  must outlive the documents
/// @return kTooLarge beyond kMaxInput bytes, codec::kMaxJsonDepth levels or codec::kMaxJsonValues
///         values in a document, aliases of all documents expanded; kInvalidArgument for text that
///         is not YAML, and for a map that repeats a key. Both name the line.
[[nodiscard]] Result<std::vector<Document>> parse_yaml(std::string_view text);

/// insert_members() of a YAML document.
/// @return kInvalidArgument also if that changes anything else: an object is an alias, merged or
///         empty, or a value has several lines.
[[nodiscard]] Result<std::string> insert_yaml(const Document& document,
                                              std::span<const Insertion> insertions);

}  // namespace podqos::ctl
