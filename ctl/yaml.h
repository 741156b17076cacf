#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "ctl/json_text.h"

namespace podqos::ctl {

/// One document of a YAML stream.
struct YamlDocument {
  std::string text;  ///< as written, its "---" line included
  std::string json;  ///< its value as JSON text; "" for a document that only has comments
  friend bool operator==(const YamlDocument&, const YamlDocument&) = default;
};

/// Splits a stream into documents and converts each to JSON text. Quantities keep their exact text:
/// a plain scalar that is a JSON number stays that number, digit by digit. Other YAML 1.1 words for
/// true, false and null, and other numbers, are read as Kubernetes' parser reads them
/// (sigs.k8s.io/yaml). All other scalars are strings.
/// @return kTooLarge beyond kMaxInput bytes, codec::kMaxJsonDepth levels or kMaxYamlNodes values,
///         aliases expanded; kInvalidArgument for text that is not YAML, with the line, and for a
///         document that repeats a key, with its first line
[[nodiscard]] Result<std::vector<YamlDocument>> parse_yaml(std::string_view text);

/// The members as lines of YAML, each with its indentation.
[[nodiscard]] std::string format_members(const StringMembers& members, std::size_t indent);

/// Adds members to maps of one document or replaces their values, and keeps all else to the byte.
/// @param expected  the JSON value that the result must have
/// @return nullopt if the layout does not allow it: a map that is an alias, merged or null, or
///         whose first line it shares; a value of several lines.
[[nodiscard]] std::optional<std::string> insert_yaml(const std::string& document,
                                                     std::span<const Insertion> insertions,
                                                     std::string_view expected);

}  // namespace podqos::ctl
