#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/error.h"

namespace podqos::ctl {

/// One document of a YAML stream.
struct YamlDocument {
  std::string text;  ///< as written, its "---" line included
  std::string json;  ///< its value as JSON text; "" for a document that only has comments
  friend bool operator==(const YamlDocument&, const YamlDocument&) = default;
};

/// Maximum number of values in one document, aliases expanded.
constexpr std::size_t kMaxYamlNodes = 100'000;

/// Splits a stream into documents and converts each to JSON text. Quantities keep their exact text:
/// a plain scalar that is a JSON number stays that number, digit by digit. Other YAML 1.1 words for
/// true, false and null, and octal numbers, are read as Kubernetes' parser reads them
/// (sigs.k8s.io/yaml). All other scalars are strings.
/// @return kTooLarge beyond kMaxInput bytes, codec::kMaxJsonDepth levels or kMaxYamlNodes values,
/// aliases
///         expanded; kInvalidArgument for text that is not YAML, with the line, and for a document
///         that repeats a key, with its first line
[[nodiscard]] Result<std::vector<YamlDocument>> parse_yaml(std::string_view text);

/// Whether lines of `text` end in CR LF, judged by the first one.
[[nodiscard]] bool has_crlf(std::string_view text);
/// `text` with each LF replaced by CR LF.
[[nodiscard]] std::string with_crlf(std::string_view text);

/// Converts JSON text to a block-style YAML document that ends in a newline.
[[nodiscard]] std::string format_yaml(std::string_view json);

/// A string as a YAML scalar on one line: plain if no YAML version reads it as another type, else
/// quoted.
[[nodiscard]] std::string format_yaml_scalar(std::string_view text);

/// Adds members to the map at `path` of one document by inserting lines, so that comments and
/// layout are preserved.
/// @param members   key and value, both as strings
/// @param expected  the JSON value that the result must have
/// @return nullopt if lines cannot be inserted: flow style, aliases, or an existing member.
[[nodiscard]] std::optional<std::string> insert_yaml(
    const std::string& document, const std::vector<std::string>& path,
    const std::vector<std::pair<std::string, std::string>>& members, std::string_view expected);

}  // namespace podqos::ctl
