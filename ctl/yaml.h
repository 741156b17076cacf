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
  std::string json;  ///< its value as JSON text; "" for a document of nothing but comments
  friend bool operator==(const YamlDocument&, const YamlDocument&) = default;
};

constexpr std::size_t kMaxYamlNodes = 100'000;

/// Splits and converts a stream. Quantities keep their exact text: a plain scalar that is a number
/// in JSON stays that number, digit by digit; YAML 1.1's other words for true, false and null and
/// its octal numbers are taken as Kubernetes' own parser takes them; all else is a string.
/// @return kTooLarge beyond 4 MiB, 64 levels or kMaxYamlNodes nodes (aliases count each time);
///         kInvalidArgument with the line for what is no YAML, repeats a key, or uses merge keys.
[[nodiscard]] Result<std::vector<YamlDocument>> parse_yaml(std::string_view text);

/// Do the lines of `text` end in CR LF, as the first of them says?
[[nodiscard]] bool has_crlf(std::string_view text);
/// `text` with CR LF where it has LF.
[[nodiscard]] std::string with_crlf(std::string_view text);

/// JSON text as a block-style YAML document, ending in a newline.
[[nodiscard]] std::string format_yaml(std::string_view json);

/// A scalar in YAML: plain where that cannot be misread, else quoted, on one line.
[[nodiscard]] std::string format_yaml_scalar(std::string_view text);

/// Puts members into the map at `path` of one document by adding lines, so that comments and layout
/// stay.
/// @param expected  the JSON value that the result must have.
/// @return nullopt where that cannot be done: flow style, aliases, a member that is there already.
[[nodiscard]] std::optional<std::string> insert_yaml(
    const std::string& document, const std::vector<std::string>& path,
    const std::vector<std::pair<std::string, std::string>>& members, std::string_view expected);

}  // namespace podqos::ctl
