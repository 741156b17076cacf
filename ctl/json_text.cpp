#include "ctl/json_text.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "ctl/table.h"

namespace podqos::ctl {
namespace {

using codec::JsonNode;
using Kind = JsonNode::Kind;

/// The last member of this name, or the element of an array at this index, also if it is null.
const JsonNode* child(const JsonNode& node, std::string_view step) {
  if (node.kind == Kind::kArray) {
    const auto index = static_cast<std::size_t>(parse_int(step).value_or(-1));
    return index < node.children.size() ? &node.children[index] : nullptr;
  }
  const auto found =
      std::ranges::find(node.children.rbegin(), node.children.rend(), step, &JsonNode::key);
  return found == node.children.rend() ? nullptr : &*found;
}

/// Members of an object, without its braces, within the objects that are missing on the way.
std::string new_members(std::span<const std::string> path, const StringMembers& members,
                        std::string_view space) {
  if (!path.empty())
    return cat(json_quote(path.front()), ": {", new_members(path.subspan(1), members, ""), "}");
  std::string out;
  for (const auto& [key, value] : members)
    out += cat(out.empty() ? "" : cat(",", space), json_quote(key), ": ", json_quote(value));
  return out;
}

/// Adds what one insertion does to the text.
Status add_edits(std::string_view text, const JsonNode& root, const Insertion& insertion,
                 std::vector<TextEdit>& edits) {
  const auto offset_of = [&](std::string_view part) {
    return static_cast<std::size_t>(part.data() - text.data());
  };
  const JsonNode* object = &root;
  std::span<const std::string> path = insertion.path;
  for (; !path.empty() && !object->is_null(); path = path.subspan(1)) {
    const JsonNode* next = child(*object, path.front());
    if (next == nullptr) break;
    object = next;
  }
  if (object->is_null()) {
    edits.push_back({.offset = offset_of(object->raw),
                     .length = object->raw.size(),
                     .text = cat("{", new_members(path, insertion.members, ""), "}")});
    return {};
  }
  if (object->kind != Kind::kObject)
    return fail(
        ErrorCode::kInvalidArgument,
        cat(join(insertion.path, "."), ": expected an object, found ", json_shown(*object)));
  StringMembers missing;
  for (const auto& [key, value] : insertion.members) {
    const JsonNode* present = path.empty() ? child(*object, key) : nullptr;
    if (present == nullptr)
      missing.emplace_back(key, value);
    else if (present->kind != Kind::kString || present->text != value)
      edits.push_back({.offset = offset_of(present->raw),
                       .length = present->raw.size(),
                       .text = json_quote(value)});
  }
  if (missing.empty()) return {};
  // Before the first member, with its indentation, to preserve the layout.
  const std::size_t begin = offset_of(object->raw) + 1;
  const bool first = object->children.empty();
  const std::size_t end = first ? begin : offset_of(object->children.front().raw_key);
  const std::string_view space = text.substr(begin, end - begin);
  edits.push_back({.offset = end,
                   .text = cat(new_members(path, missing, space), first ? "" : cat(",", space))});
  return {};
}

}  // namespace

codec::JsonTree json_tree(std::string_view text) {
  // Bounded when it was accepted; a YAML document may be longer as JSON, and nest one level deeper.
  constexpr codec::JsonBounds kBounds{
      .bytes = codec::kUnbounded, .depth = codec::kMaxJsonDepth + 1, .values = codec::kUnbounded};
  auto tree = codec::parse_json_tree(text, kBounds);
  return tree ? std::move(*tree) : codec::JsonTree{};
}

const JsonNode* json_member(const JsonNode& object, std::string_view key) {
  const JsonNode* const found = object.kind == Kind::kObject ? child(object, key) : nullptr;
  return found == nullptr || found->is_null() ? nullptr : found;
}

const JsonNode* json_at(const JsonNode& object, std::span<const std::string> path) {
  const JsonNode* found = &object;
  for (const std::string& key : path) {
    found = child(*found, key);
    if (found == nullptr || found->is_null()) return nullptr;
  }
  return found;
}

std::string json_shown(const JsonNode& value) {
  return value.kind == Kind::kString ? cat("\"", printable(value.text), "\"")
                                     : printable(value.raw);
}

std::string json_quote(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string edited(std::string_view text, std::vector<TextEdit> edits) {
  std::ranges::stable_sort(edits, std::ranges::greater{}, &TextEdit::offset);
  std::string out{text};
  for (const TextEdit& edit : edits)
    out.replace(edit.offset, edit.length, edit.text);
  return out;
}

Result<std::string> insert_json(std::string_view text, std::span<const Insertion> insertions) {
  const codec::JsonTree tree = json_tree(text);
  std::vector<TextEdit> edits;
  for (const Insertion& insertion : insertions)
    PODQOS_TRY(add_edits(text, tree, insertion, edits));
  return edited(text, std::move(edits));
}

}  // namespace podqos::ctl
