#include <algorithm>
#include <string>

#include <yaml-cpp/yaml.h>

#include "common/base/text.h"
#include "ctl/json_text.h"
#include "ctl/yaml.h"

namespace podqos::ctl {
namespace {

/// Columns by which a new map is indented.
constexpr std::size_t kInsertedIndent = 2;

/// A place for new lines: before the first member of a block-style map.
struct Place {
  std::size_t offset = 0;  ///< of that member's line
  std::size_t indent = 0;  ///< columns
};

/// Offset of a line, counted from 0.
std::optional<std::size_t> line_offset(std::string_view text, int line) {
  std::size_t at = 0;
  for (; line > 0; --line) {
    at = text.find('\n', at);
    if (at == std::string_view::npos) return std::nullopt;
    ++at;
  }
  return at;
}

/// The place for new members of a map; nullopt if it is not a block-style map with members on lines
/// of their own.
std::optional<Place> place_in(std::string_view text, const YAML::Node& map) {
  if (!map.IsMap() || map.size() == 0 || map.Style() != YAML::EmitterStyle::Block)
    return std::nullopt;
  const YAML::Mark mark = map.begin()->first.Mark();
  const auto offset = line_offset(text, mark.line);
  if (!offset || mark.column < 0) return std::nullopt;
  const auto indent = static_cast<std::size_t>(mark.column);
  // With "- ", a tag or an anchor before the key, no line can be inserted before it.
  const std::string_view before = text.substr(*offset, indent);
  if (before.find_first_not_of(' ') != std::string_view::npos) return std::nullopt;
  return Place{.offset = *offset, .indent = indent};
}

/// Whether two values differ in white space and escapes at most.
bool same_value(const codec::JsonNode& a, const codec::JsonNode& b) {
  return a.kind == b.kind && a.key == b.key && a.text == b.text &&
         std::ranges::equal(a.children, b.children, same_value);
}

/// The document with the new lines; nullopt if lines cannot be inserted.
std::optional<std::string> with_lines(
    const std::string& document, const std::vector<std::string>& path,
    const std::vector<std::pair<std::string, std::string>>& members) {
  YAML::Node node = YAML::Load(document);
  auto step = path.begin();
  for (; step != path.end(); ++step) {
    const YAML::Node next = static_cast<const YAML::Node&>(node)[*step];
    if (!next.IsDefined() || next.IsNull()) break;
    node.reset(next);
  }
  // A key without value, or several missing maps: rare, and left to the caller.
  if (path.end() - step > 1) return std::nullopt;
  if (step != path.end() && static_cast<const YAML::Node&>(node)[*step].IsDefined())
    return std::nullopt;
  const auto place = place_in(document, node);
  if (!place) return std::nullopt;
  std::string lines;
  std::size_t indent = place->indent;
  if (step != path.end()) {
    lines = cat(std::string(indent, ' '), format_yaml_scalar(*step), ":\n");
    indent += kInsertedIndent;
  }
  for (const auto& [key, value] : members)
    lines += cat(std::string(indent, ' '), format_yaml_scalar(key), ": ", format_yaml_scalar(value),
                 "\n");
  if (has_crlf(document)) lines = with_crlf(lines);
  return cat(document.substr(0, place->offset), lines, document.substr(place->offset));
}

}  // namespace

std::optional<std::string> insert_yaml(
    const std::string& document, const std::vector<std::string>& path,
    const std::vector<std::pair<std::string, std::string>>& members, std::string_view expected) {
  try {
    auto text = with_lines(document, path, members);
    if (!text) return std::nullopt;
    // Verified by parsing the result.
    const auto read = parse_yaml(*text);
    if (!read || read->size() != 1 ||
        !same_value(json_tree(read->front().json), json_tree(expected)))
      return std::nullopt;
    return text;
  } catch (const YAML::Exception&) {
    return std::nullopt;
  }
}

}  // namespace podqos::ctl
