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

/// A value that podqos has filled in, and what came with it: the value itself, or the element of a
/// list that it is in.
struct Edited {
  const JsonNode* value;
  const JsonNode* item;
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
    return Edited{.value = value, .item = value};
  }
  for (const JsonNode& item : container->children) {
    const JsonNode* const size = item.find("pageSize");
    const JsonNode* const limit = item.find("limit");
    if (size != nullptr && size->text == name && limit != nullptr)
      return Edited{.value = limit, .item = &item};
  }
  return std::nullopt;
}

/// Parses a config.json but for the record, which has bounds of its own.
Result<JsonTree> parse_config(std::string_view config) {
  constexpr auto kIsRead = [](std::string_view parent, std::string_view name) {
    return name != kEditRecord && is_container_name(parent, name);
  };
  PODQOS_ASSIGN(auto root, parse_json_tree(config, {.bytes = kMaxConfigSize,
                                                    .rules = JsonRules::kGo,
                                                    .is_read = kIsRead}));
  merge_members(root);
  return root;
}

/// Where a part of a text begins in it.
std::size_t begin_of(std::string_view part, std::string_view text) {
  return static_cast<std::size_t>(part.data() - text.data());
}

/// The text without a member or element, and the comma before it or, where it is the first, behind.
std::string without(const JsonNode& item, std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::size_t from = begin_of(item.raw_key.empty() ? item.raw : item.raw_key, text);
  std::size_t to = begin_of(item.raw, text) + item.raw.size();
  const std::size_t before = text.find_last_not_of(kSpace, from - 1);
  const std::size_t behind = text.find_first_not_of(kSpace, to);
  if (text[before] == ',')
    from = text.find_last_not_of(kSpace, before - 1) + 1;
  else if (text[behind] == ',')
    to = text.find_first_not_of(kSpace, behind + 1);
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
    text = without(*found->item, text);
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
  std::string former = without(*record, config);
  const auto edits =
      parse_json_tree(record->raw, {.bytes = kMaxRecordBytes, .rules = JsonRules::kGo});
  if (edits && edits->children.size() <= kMaxRecords)
    for (const JsonNode& edit : edits->children)
      take_back(edit, former);
  return former;
}

}  // namespace podqos::codec
