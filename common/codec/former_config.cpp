#include <algorithm>
#include <cstddef>

#include "common/base/text.h"
#include "common/codec/json_tree.h"
#include "common/codec/oci_edit.h"

namespace podqos::codec {

namespace {

// podqos writes one record for each value that it fills in, a dozen in all: a longer note is not
// its own.
constexpr std::size_t kMaxRecords = 32;
constexpr std::size_t kMaxRecordBytes = 65'536;

// What podqos fills in, separated by spaces: members, and behind kHugepageLimits any page size.
constexpr std::string_view kMembers =
    "/linux/cgroupsPath /linux/resources/cpu/shares /linux/resources/cpu/quota "
    "/linux/resources/cpu/period /linux/resources/memory/limit /linux/resources/pids/limit "
    "/process/oomScoreAdj /linux/resources/unified/memory.swap.max "
    "/linux/resources/unified/memory.oom.group /linux/resources/unified/memory.min "
    "/linux/resources/unified/memory.low /linux/resources/unified/memory.high";
constexpr std::string_view kHugepageLimits = "/linux/resources/hugepageLimits";

/// A value that podqos has filled in, and what came with it: a member or element of an object or
/// list.
struct Edited {
  const JsonNode* value;
  const JsonNode* item;
  const JsonNode* container;
};

/// The value at a path such as "/linux/resources/cpu/shares", if podqos fills in such values.
std::optional<Edited> find_value(const JsonNode& root, std::string_view path) {
  const std::size_t slash = std::min(path.rfind('/'), path.size());
  const std::string_view parent = path.substr(0, slash);
  if (parent != kHugepageLimits && !has_word(kMembers, path)) return std::nullopt;
  const JsonNode* const container = root.at(parent);
  if (container == nullptr) return std::nullopt;
  const std::string_view name = path.substr(slash + 1);
  if (parent != kHugepageLimits) {
    const JsonNode* const value = container->find(name);
    if (value == nullptr) return std::nullopt;
    return Edited{.value = value, .item = value, .container = container};
  }
  for (const JsonNode& item : container->children) {
    const JsonNode* const size = item.find("pageSize");
    const JsonNode* const limit = item.find("limit");
    if (size != nullptr && size->text == name && limit != nullptr)
      return Edited{.value = limit, .item = &item, .container = container};
  }
  return std::nullopt;
}

/// Parses a config.json but for the record, which has bounds of its own.
Result<JsonTree> parse_config(std::string_view config) {
  constexpr auto kIsRead = [](std::string_view parent, std::string_view name) {
    return name != kEditRecord && is_container_name(parent, name);
  };
  return parse_json_tree(config,
                         {.bytes = kMaxConfigSize, .rules = JsonRules::kGo, .is_read = kIsRead});
}

/// Where a part of a text begins in it.
std::size_t begin_of(std::string_view part, std::string_view text) {
  return static_cast<std::size_t>(part.data() - text.data());
}

/// The text without a member or element, and the comma before it or, where it is the first, behind.
std::string without(const JsonNode& container, const JsonNode& item, std::string_view text) {
  const auto begin = [&](const JsonNode& node) {
    return begin_of(node.raw_key.empty() ? node.raw : node.raw_key, text);
  };
  const auto end = [&](const JsonNode& node) { return begin_of(node.raw, text) + node.raw.size(); };
  const JsonNode* const next = &item + 1;
  const bool is_first = &item == &container.children.front();
  const bool is_last = &item == &container.children.back();
  const std::size_t from = is_first ? begin(item) : end(*(&item - 1));
  const std::size_t to = is_first && !is_last ? begin(*next) : end(item);
  return std::string{text}.erase(from, to - from);
}

/// Takes one recorded edit back: `{"at":PATH,"is":VALUE}`, with `"was":VALUE` if there was a value.
void take_back(const JsonNode& edit, std::string& text) {
  const JsonNode* const at = edit.find("at");
  const JsonNode* const is = edit.find("is");
  const JsonNode* const was = edit.find("was");
  if (at == nullptr || is == nullptr) return;
  const auto root = parse_config(text);
  const auto found = root ? find_value(*root, at->text) : std::nullopt;
  if (!found || found->value->raw != is->raw) return;
  if (was == nullptr) {
    text = without(*found->container, *found->item, text);
  } else {
    const std::string_view raw = found->value->raw;
    text.replace(begin_of(raw, text), raw.size(), was->raw);
  }
}

}  // namespace

std::optional<std::string> former_config(std::string_view config) {
  if (!config.contains(kEditRecord)) return std::nullopt;
  const auto root = parse_config(config);
  const JsonNode* const record = root ? root->find(kEditRecord) : nullptr;
  if (record == nullptr) return std::nullopt;
  std::string former = without(*root, *record, config);
  const auto edits =
      parse_json_tree(record->raw, {.bytes = kMaxRecordBytes, .rules = JsonRules::kGo});
  if (edits && edits->children.size() <= kMaxRecords) {
    for (const JsonNode& edit : edits->children)
      take_back(edit, former);
  }
  return former;
}

}  // namespace podqos::codec
