#include <algorithm>
#include <string>

#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "ctl/json_text.h"
#include "ctl/yaml.h"
#include "ctl/yaml_tree.h"

namespace podqos::ctl {
namespace {

/// Columns by which a new map is indented.
constexpr std::size_t kInsertedIndent = 2;

/// A string that every YAML version reads as one.
std::string yaml_string(std::string_view text) {
  const bool ascii = std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
  if (!ascii)
    return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  std::string out = "'";
  for (const char c : text)
    out.append(c == '\'' ? 2 : 1, c);
  return out + '\'';
}

/// The value of a key, or the element of a sequence; nullptr if it is absent or null.
const YamlNode* yaml_child(const YamlNode& node, const std::string& step) {
  if (node.kind == YamlNode::Kind::kSequence) {
    const auto index = static_cast<std::size_t>(parse_int(step).value_or(-1));
    return index < node.children.size() ? node.children[index] : nullptr;
  }
  for (std::size_t i = 0; node.kind == YamlNode::Kind::kMap && i + 1 < node.children.size(); i += 2)
    if (node.children[i]->text == step) return node.children[i + 1];
  return nullptr;
}

/// "a: {b: {x: 'y'}}", without the outermost braces.
std::string flow_members(std::span<const std::string> path, const StringMembers& members) {
  if (!path.empty()) return cat(path.front(), ": {", flow_members(path.subspan(1), members), "}");
  std::string out;
  for (const auto& [key, value] : members)
    out += cat(out.empty() ? "" : ", ", key, ": ", yaml_string(value));
  return out;
}

/// "a:", "  b:" and the members below, as lines.
std::string block_members(std::span<const std::string> path, const StringMembers& members,
                          std::size_t indent) {
  std::string out;
  for (const std::string& key : path) {
    out += cat(std::string(indent, ' '), key, ":\n");
    indent += kInsertedIndent;
  }
  return out + format_members(members, indent);
}

/// Puts new members in front of those of a map.
/// @param path  keys of maps that are to be made around them
/// @return nullopt if the document cannot take them.
std::optional<TextEdit> insert_members(std::string_view text, const YamlNode& map,
                                       std::span<const std::string> path,
                                       const StringMembers& members) {
  if (map.flow)
    return TextEdit{.offset = map.offset + 1,
                    .text = cat(flow_members(path, members), map.children.empty() ? "" : ", ")};
  // With "- ", a tag or an anchor before the first key, no line can be inserted before it.
  const YamlNode& first = *map.children.front();
  const std::size_t begin = first.offset - std::min(first.column, first.offset);
  if (text.substr(begin, first.column).find_first_not_of(' ') != std::string_view::npos)
    return std::nullopt;
  std::string lines = block_members(path, members, first.column);
  if (const std::size_t end = text.find('\n'); end > 0 && text[end - 1] == '\r') {
    for (std::size_t at = 0; (at = lines.find('\n', at)) != std::string::npos; at += 2)
      lines.insert(at, 1, '\r');
  }
  return TextEdit{.offset = begin, .text = std::move(lines)};
}

/// Adds what one insertion does to the text. @return false if it cannot be made.
bool add_yaml_edits(std::string_view text, const YamlNode& root, const Insertion& insertion,
                    std::vector<TextEdit>& edits) {
  const YamlNode* map = &root;
  std::span<const std::string> path = insertion.path;
  for (; !path.empty(); path = path.subspan(1)) {
    const YamlNode* next = yaml_child(*map, path.front());
    if (next == nullptr) break;
    map = next;
  }
  if (map->kind != YamlNode::Kind::kMap) return false;
  StringMembers missing;
  for (const auto& [key, value] : insertion.members) {
    const YamlNode* present = path.empty() ? yaml_child(*map, key) : nullptr;
    if (present == nullptr)
      missing.emplace_back(key, value);
    else if (present->text != value)
      edits.push_back({.offset = present->offset,
                       .length = present->end - present->offset,
                       .text = yaml_string(value)});
  }
  if (missing.empty()) return true;
  auto edit = insert_members(text, *map, path, missing);
  if (!edit) return false;
  edits.push_back(*std::move(edit));
  return true;
}

/// Whether two values differ in white space and escapes at most, and in the order of members.
bool same_value(std::string_view a, std::string_view b) {
  return nlohmann::json::parse(a, nullptr, false) == nlohmann::json::parse(b, nullptr, false);
}

}  // namespace

std::string format_members(const StringMembers& members, std::size_t indent) {
  std::string out;
  for (const auto& [key, value] : members)
    out += cat(std::string(indent, ' '), key, ": ", yaml_string(value), "\n");
  return out;
}

std::optional<std::string> insert_yaml(const std::string& document,
                                       std::span<const Insertion> insertions,
                                       std::string_view expected) {
  const auto tree = YamlTree::parse(document);
  if (!tree || tree->root == nullptr) return std::nullopt;
  std::vector<TextEdit> edits;
  for (const Insertion& insertion : insertions)
    if (!add_yaml_edits(document, *tree->root, insertion, edits)) return std::nullopt;
  std::string text = edited(document, std::move(edits));
  // What was an alias or is there twice shows in the value.
  const auto read = parse_yaml(text);
  if (!read || read->size() != 1 || !same_value(read->front().json, expected)) return std::nullopt;
  return text;
}

}  // namespace podqos::ctl
