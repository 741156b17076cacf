#include "common/codec/json_tree.h"

#include <algorithm>

namespace podqos::codec {

namespace {

/// Removes the first character, folded as Unicode does it to a lower case letter if it is one.
char take_folded(std::string_view& name) {
  // The only characters beside capitals that fold to ASCII letters.
  constexpr std::string_view kLongS = "\xc5\xbf";
  constexpr std::string_view kKelvin = "\xe2\x84\xaa";
  for (const auto& [text, letter] : {std::pair{kLongS, 's'}, std::pair{kKelvin, 'k'}}) {
    if (!name.starts_with(text)) continue;
    name.remove_prefix(text.size());
    return letter;
  }
  const char c = name.front();
  name.remove_prefix(1);
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

bool is_named(std::string_view key, std::string_view name, MemberNames names) {
  if (key == name || names == MemberNames::kExact) return key == name;
  while (!key.empty() && !name.empty())
    if (take_folded(key) != take_folded(name)) return false;
  return key.empty() && name.empty();
}

const JsonNode* JsonNode::find(std::string_view name, MemberNames names) const {
  const JsonNode* found = nullptr;
  for (const JsonNode& member : children) {
    if (!is_named(member.key, name, names)) continue;
    if (found != nullptr) return nullptr;
    found = &member;
  }
  return found;
}

const JsonNode* JsonNode::at(std::string_view pointer, MemberNames names) const {
  const JsonNode* found = this;
  while (found != nullptr && !pointer.empty()) {
    pointer.remove_prefix(1);
    const std::string_view name = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(name.size());
    found = found->find(name, names);
  }
  return found;
}

std::string format_position(std::string_view text, std::string_view part) {
  const auto offset = static_cast<std::size_t>(part.data() - text.data());
  const std::string_view before = text.substr(0, offset);
  if (!text.contains('\n')) return cat("byte ", before.size() + 1);
  const std::size_t line = before.rfind('\n') + 1;  // npos + 1 is 0
  const auto columns = std::ranges::count_if(
      before.substr(line), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80; });
  return cat("line ", std::ranges::count(before, '\n') + 1, ", column ", columns + 1);
}

std::string_view format_kind(JsonNode::Kind kind) {
  return word_at("null boolean number string array object", static_cast<std::size_t>(kind));
}

std::string describe(const JsonNode& node) {
  if (node.kind == JsonNode::Kind::kString) return cat("\"", printable(node.text), "\"");
  const bool number = node.kind == JsonNode::Kind::kNumber;
  return number ? printable(node.text) : std::string{format_kind(node.kind)};
}

}  // namespace podqos::codec
