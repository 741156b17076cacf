#include <algorithm>
#include <cstddef>
#include <utility>

#include "common/base/text.h"
#include "common/codec/json_tree.h"
#include "common/codec/settings_json.h"
#include "common/codec/settings_table.h"

namespace podqos::codec {

namespace {

using Kind = JsonNode::Kind;

constexpr std::string_view kRuntimes = "runtimes";

/// Whether a member with an unknown name, or in the wrong object, may be a misspelt `runtimes`. No
/// other field is a list, and few are paths.
bool may_be_runtimes(const JsonNode& member) {
  if (member.kind == Kind::kArray) return true;
  const std::string nearest =
      nearest_name(member.key, {kRuntimes, "cgroupRoot", "stateDir", "sink", "log.sink"});
  const bool is_path = member.kind == Kind::kString && member.text.starts_with('/');
  return nearest == kRuntimes || (is_path && nearest.empty());
}

/// The first such member, at any depth; nullptr if there is none.
const JsonNode* find_doubtful(const JsonNode& object) {
  for (const JsonNode& member : object.children) {
    if (may_be_runtimes(member)) return &member;
    if (member.kind != Kind::kObject) continue;
    if (const JsonNode* below = find_doubtful(member)) return below;
  }
  return nullptr;
}

}  // namespace

Result<std::optional<std::vector<std::string>>> salvage_runtimes(std::string_view text) {
  const JsonPrefix prefix =
      parse_json_prefix(text, {.bytes = kMaxSettingsSize, .comments = JsonComments::kIgnore});
  const std::vector<JsonNode>& members = prefix.tree.children;
  if (!prefix.error && prefix.tree.kind != Kind::kObject)
    return unexpected_kind("one object of settings", prefix.tree);
  const auto found = prefix.tree.kind == Kind::kObject
                         ? std::ranges::find(members, kRuntimes, &JsonNode::key)
                         : members.end();
  // The field may be repeated after the syntax error.
  if (prefix.error && (found == members.end() || prefix.rest.contains(kRuntimes)))
    return fail(*prefix.error);
  if (found == members.end()) {
    const JsonNode* doubtful = find_doubtful(prefix.tree);
    if (doubtful == nullptr) return std::nullopt;
    return refuse_value("field ", printable(doubtful->key), " may be meant as ", kRuntimes);
  }
  if (std::ranges::count(members, kRuntimes, &JsonNode::key) > 1)
    return refuse_value(kRuntimes, ": field is repeated");
  auto paths = read_value(kRuntimePaths, *found);
  if (!paths) return fail(std::move(paths).error().with_context(kRuntimes));
  return std::get<std::vector<std::string>>(*std::move(paths));
}

}  // namespace podqos::codec
