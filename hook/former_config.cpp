#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "common/codec/json_tree.h"
#include "common/codec/oci_edit.h"
#include "hook/bundle.h"

namespace podqos::hook {

namespace {

using codec::JsonNode;

// podqos writes one record for each value that it fills in, a dozen in all: a longer note is not
// its own.
constexpr std::size_t kMaxRecords = 64;
constexpr std::size_t kMaxRecordBytes = 65'536;

/// The members and the files that podqos fills in, beside limits of huge pages.
constexpr std::array<std::string_view, 7> kMembers{
    "/linux/cgroupsPath",          "/linux/resources/cpu/shares",   "/linux/resources/cpu/quota",
    "/linux/resources/cpu/period", "/linux/resources/memory/limit", "/linux/resources/pids/limit",
    "/process/oomScoreAdj"};
constexpr std::string_view kHugepageLimits = "/linux/resources/hugepageLimits/";
constexpr std::string_view kUnified = "/linux/resources/unified/";
constexpr std::array<std::string_view, 2> kFiles{"memory.swap.max", "memory.oom.group"};

constexpr bool has(const auto& range, const auto& value) {
  return std::ranges::find(range, value) != range.end();
}

/// A value that podqos has filled in, and what came with it: a member or element of an object or
/// list.
struct Edited {
  const JsonNode* value;
  const JsonNode* item;
  const JsonNode* container;
};

/// The limit of one page size, in the list of them.
std::optional<Edited> find_hugepage(const JsonNode& list, std::string_view size) {
  for (const JsonNode& item : list.children) {
    const JsonNode* const found = item.find("pageSize");
    if (found == nullptr || found->text != size) continue;
    const JsonNode* const limit = item.find("limit");
    if (limit != nullptr) return Edited{.value = limit, .item = &item, .container = &list};
  }
  return std::nullopt;
}

/// Whether podqos fills in the value at this path.
bool is_edited(std::string_view path) {
  if (path.starts_with(kUnified)) return has(kFiles, path.substr(kUnified.size()));
  return has(kMembers, path) || path.starts_with(kHugepageLimits);
}

/// The value at a path such as "/linux/resources/cpu/shares", if podqos fills in such values.
std::optional<Edited> find_value(const JsonNode& root, std::string_view path) {
  if (!is_edited(path)) return std::nullopt;
  const bool hugepages = path.starts_with(kHugepageLimits);
  const std::string_view size = hugepages ? path.substr(kHugepageLimits.size()) : "";
  if (hugepages) path = kHugepageLimits.substr(0, kHugepageLimits.size() - 1);
  const JsonNode* container = nullptr;
  const JsonNode* value = &root;
  while (value != nullptr && path.starts_with('/')) {
    path.remove_prefix(1);
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(name.size());
    container = value;
    value = container->find(name);
  }
  if (value == nullptr) return std::nullopt;
  if (hugepages) return find_hugepage(*value, size);
  return Edited{.value = value, .item = value, .container = container};
}

/// Plans what takes edits of a text back.
class Restoration {
 public:
  explicit Restoration(std::string_view text) : text_(text) {}

  /// Without this member or element.
  void remove(const JsonNode& container, const JsonNode& item) {
    if (done_.insert(&item).second) removed_[&container].push_back(&item);
  }
  /// With another value.
  void replace(const JsonNode& value, std::string_view former) {
    if (done_.insert(&value).second)
      splices_.push_back(
          {.begin = begin_of(value.raw), .end = end_of(value), .text = std::string{former}});
  }

  [[nodiscard]] std::optional<std::string> apply() {
    for (const auto& [container, items] : removed_)
      erase(*container, items);
    std::ranges::sort(splices_, {}, &codec::Splice::begin);
    auto restored = codec::apply_splices(text_, splices_);
    if (!restored) return std::nullopt;
    return std::move(*restored);
  }

 private:
  [[nodiscard]] std::size_t begin_of(std::string_view part) const {
    return static_cast<std::size_t>(part.data() - text_.data());
  }
  [[nodiscard]] std::size_t begin_of(const JsonNode& item) const {
    return begin_of(item.raw_key.empty() ? item.raw : item.raw_key);
  }
  [[nodiscard]] std::size_t end_of(const JsonNode& item) const {
    return begin_of(item.raw) + item.raw.size();
  }

  /// Erases items, each with the comma before it or, where nothing stays before it, behind it.
  void erase(const JsonNode& container, const std::vector<const JsonNode*>& items) {
    const std::vector<JsonNode>& all = container.children;
    bool keeps_one = false;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!has(items, &all[i])) {
        keeps_one = true;
        continue;
      }
      const bool last = i + 1 == all.size();
      splices_.push_back({.begin = keeps_one ? end_of(all[i - 1]) : begin_of(all[i]),
                          .end = keeps_one || last ? end_of(all[i]) : begin_of(all[i + 1]),
                          .text = {}});
    }
  }

  std::string_view text_;
  std::set<const JsonNode*> done_;
  std::map<const JsonNode*, std::vector<const JsonNode*>> removed_;
  std::vector<codec::Splice> splices_;
};

/// Takes one recorded edit back: `{"at":PATH,"is":VALUE}`, with `"was":VALUE` if there was a value.
void take_back(const JsonNode& root, const JsonNode& record, Restoration& restoration) {
  const JsonNode* const at = record.find("at");
  const JsonNode* const is = record.find("is");
  const JsonNode* const was = record.find("was");
  if (at == nullptr || is == nullptr) return;
  const auto found = find_value(root, at->text);
  if (!found || found->value->raw != is->raw) return;
  if (was != nullptr) {
    restoration.replace(*found->value, was->raw);
  } else {
    restoration.remove(*found->container, *found->item);
  }
}

}  // namespace

std::optional<std::string> former_config(std::string_view config) {
  if (!config.contains(codec::kEditRecord)) return std::nullopt;
  // The record has bounds of its own.
  constexpr auto kIsRead = [](std::string_view parent, std::string_view name) {
    return name != codec::kEditRecord && codec::is_container_name(parent, name);
  };
  const auto root =
      codec::parse_json_tree(config, {.bytes = codec::kMaxConfigSize, .is_read = kIsRead});
  if (!root) return std::nullopt;
  const JsonNode* const record = root->find(codec::kEditRecord);
  if (record == nullptr) return std::nullopt;
  Restoration restoration{config};
  restoration.remove(*root, *record);
  const auto edits = codec::parse_json_tree(record->raw, {.bytes = kMaxRecordBytes});
  if (edits && edits->children.size() <= kMaxRecords) {
    for (const JsonNode& edit : edits->children)
      take_back(*root, edit, restoration);
  }
  return restoration.apply();
}

}  // namespace podqos::hook
