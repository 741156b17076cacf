#include "ctl/json_text.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/base/text.h"

namespace podqos::ctl {
namespace {

using codec::JsonNode;
using Kind = JsonNode::Kind;

/// The last member of this name, also if it is null.
const JsonNode* last_member(const JsonNode& object, std::string_view key) {
  const auto found =
      std::ranges::find(object.children.rbegin(), object.children.rend(), key, &JsonNode::key);
  return object.kind != Kind::kObject || found == object.children.rend() ? nullptr : &*found;
}

/// `text` with the bytes of `part`, a view into it, replaced.
std::string with_replaced(std::string_view text, std::string_view part,
                          std::string_view replacement) {
  return cat(std::string_view{text.begin(), part.begin()}, replacement,
             std::string_view{part.end(), text.end()});
}

/// Inserts a new first member into the object of this text.
std::string insert_member(std::string_view text, const JsonNode& object, std::string_view key,
                          std::string_view value) {
  const std::string member = cat(json_quote(key), ": ", value);
  const std::string_view inside = object.raw.substr(1);
  if (object.children.empty()) return with_replaced(text, inside.substr(0, 0), member);
  // Before the first member, with its indentation, to preserve the layout.
  const std::string_view first = object.children.front().raw_key.substr(0, 0);
  const std::string_view space{inside.begin(), first.begin()};
  return with_replaced(text, first, cat(member, ",", space));
}

}  // namespace

codec::JsonTree json_tree(std::string_view text) {
  // Bounded when it was accepted; a YAML document may be longer as JSON, and nest one level deeper.
  constexpr codec::JsonBounds kBounds{
      .bytes = codec::kUnbounded, .depth = codec::kMaxJsonDepth + 1, .values = codec::kUnbounded};
  auto tree = codec::parse_json_tree(text, kBounds);
  return tree ? std::move(*tree) : codec::JsonTree{};
}

std::span<const JsonNode> json_elements(const JsonNode* array) {
  if (array == nullptr || array->kind != Kind::kArray) return {};
  return array->children;
}

const JsonNode* json_member(const JsonNode& object, std::string_view key) {
  const JsonNode* const found = last_member(object, key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

const JsonNode* json_at(const JsonNode& object, std::span<const std::string> path) {
  const JsonNode* found = &object;
  for (const std::string& key : path) {
    found = json_member(*found, key);
    if (found == nullptr) return nullptr;
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

Result<std::string> json_set(std::string_view object, std::span<const std::string> path,
                             std::string_view key, std::string_view value) {
  const codec::JsonTree tree = json_tree(object);
  if (tree.kind != Kind::kObject)
    return fail(ErrorCode::kInvalidArgument,
                cat("cannot set ", json_quote(key), ": expected an object"));
  const std::string_view name = path.empty() ? key : path.front();
  const JsonNode* const found = last_member(tree, name);
  std::string inner{value};
  if (!path.empty()) {
    const bool present = found != nullptr && !found->is_null();
    auto nested = json_set(present ? found->raw : "{}", path.subspan(1), key, value);
    if (!nested) return fail(std::move(nested).error().with_context(name));
    inner = std::move(*nested);
  }
  if (found == nullptr) return insert_member(object, tree, name, inner);
  return with_replaced(object, found->raw, inner);
}

}  // namespace podqos::ctl
