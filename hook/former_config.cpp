#include "hook/former_config.h"

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "common/codec/oci_edit.h"
#include "hook/edit_places.h"
#include "hook/json_cursor.h"

namespace podqos::hook {

namespace {

// podqos writes one record for each value that it fills in, a dozen in all: a longer note is not
// its own. With the bound on the items that are looked through, a hostile file costs no more.
constexpr std::size_t kMaxRecords = 64;
constexpr std::size_t kMaxRecordBytes = 65'536;
constexpr std::size_t kMaxItems = 4096;

/// A member of an object or an element of an array.
struct Item {
  std::size_t begin;      ///< offset of its name, or of an element's value
  std::string_view name;  ///< raw; "" for an element
  std::size_t value;      ///< offset
  std::string_view text;  ///< of the value

  [[nodiscard]] std::size_t end() const { return value + text.size(); }
};

/// The items of the object or array at this offset, in order; none if it is not sound, or has more
/// than kMaxItems.
std::vector<Item> items_at(std::string_view text, std::size_t at) {
  std::vector<Item> items;
  JsonCursor cursor{text, at};
  cursor.skip_space();
  const bool object = cursor.accept('{');
  if (!object) cursor.expect('[');
  const char close = object ? '}' : ']';
  while (cursor.sound() && items.size() <= kMaxItems) {
    cursor.skip_space();
    if (cursor.accept(close)) return items;
    if (!items.empty()) {
      cursor.expect(',');
      cursor.skip_space();
    }
    Item item{.begin = cursor.at(), .name = {}, .value = 0, .text = {}};
    if (object) {
      item.name = cursor.string();
      cursor.skip_space();
      cursor.expect(':');
      cursor.skip_space();
    }
    item.value = cursor.at();
    item.text = cursor.value();
    items.push_back(item);
  }
  return {};
}

/// A value in the text, and what to erase with it.
struct Place {
  std::size_t begin;
  std::string_view text;
  codec::ByteRange item;  ///< of the member or element, with one comma
};

/// The place of items[index].
Place place_of(const std::vector<Item>& items, std::size_t index) {
  const Item& item = items[index];
  codec::ByteRange range{item.begin, item.end()};
  if (index > 0) {
    range.begin = items[index - 1].end();
  } else if (items.size() > 1) {
    range.end = items[1].begin;
  }
  return {.begin = item.value, .text = item.text, .item = range};
}

/// The member `name` of the object at this offset or, if there is none, one with this name in
/// another case; nullopt if it is absent or repeated.
std::optional<Place> find_member(std::string_view text, std::size_t at, std::string_view name) {
  const std::vector<Item> items = items_at(text, at);
  for (const auto names : {codec::MemberNames::kExact, codec::MemberNames::kAnyCase}) {
    std::optional<Place> found;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (!codec::is_member_name(items[i].name, name, names)) continue;
      if (found) return std::nullopt;
      found = place_of(items, i);
    }
    if (found) return found;
  }
  return std::nullopt;
}

/// The limit of one page size in the list at this offset.
std::optional<Place> find_hugepage(std::string_view text, std::size_t at, std::string_view size) {
  const std::vector<Item> items = items_at(text, at);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto found = find_member(text, items[i].value, "pageSize");
    if (!found || found->text.substr(1, found->text.size() - 2) != size) continue;
    auto limit = find_member(text, items[i].value, "limit");
    if (limit) limit->item = place_of(items, i).item;
    return limit;
  }
  return std::nullopt;
}

/// The value at a path such as "/linux/resources/cpu/shares", if podqos fills in such values.
std::optional<Place> find_value(std::string_view text, std::string_view path) {
  std::optional<Place> found = Place{.begin = 0, .text = {}, .item = {}};
  EditNode node = EditNode::kRoot;
  while (found && path.starts_with('/')) {
    path.remove_prefix(1);
    const std::string_view name = path.substr(0, path.find('/'));
    path.remove_prefix(name.size());
    const bool hugepage = node == EditNode::kHugepages;
    found =
        hugepage ? find_hugepage(text, found->begin, name) : find_member(text, found->begin, name);
    node = hugepage ? EditNode::kOfHugepage : child_of(node, name);
  }
  const bool scalar = node == EditNode::kInteger || node == EditNode::kQuotedInteger ||
                      node == EditNode::kCgroupsPath || node == EditNode::kOfHugepage;
  return scalar ? found : std::nullopt;
}

/// Takes one recorded edit back. Before: `{"at":PATH,"is":VALUE}`, with `"was":VALUE` if there was
/// a value.
void take_back(std::string& config, std::string_view record) {
  const auto at = find_member(record, 0, "at");
  const auto is = find_member(record, 0, "is");
  const auto was = find_member(record, 0, "was");
  if (!at || !is || at->text.size() < 2) return;
  const auto found = find_value(config, at->text.substr(1, at->text.size() - 2));
  if (!found || found->text != is->text) return;
  if (was) {
    config.replace(found->begin, found->text.size(), was->text);
  } else {
    config.erase(found->item.begin, found->item.end - found->item.begin);
  }
}

}  // namespace

std::string former_config(std::string config) {
  const auto found = find_member(config, 0, codec::kEditRecord);
  if (!found) return config;
  const std::string record{found->text};
  config.erase(found->item.begin, found->item.end - found->item.begin);
  if (record.size() > kMaxRecordBytes) return config;
  const std::vector<Item> edits = items_at(record, 0);
  if (edits.size() > kMaxRecords) return config;
  for (const Item& edit : edits)
    take_back(config, edit.text);
  return config;
}

}  // namespace podqos::hook
