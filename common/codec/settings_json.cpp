#include "common/codec/settings_json.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/codec/json_tree.h"
#include "common/codec/settings_table.h"

namespace podqos::codec {

namespace {

using core::Settings;
using Kind = JsonNode::Kind;

/// The row of the field `path`; nullptr: there is none.
const Setting* find_setting(std::string_view path) {
  const auto rows = settings_table();
  const auto found = std::ranges::find(rows, path, &Setting::path);
  return found == rows.end() ? nullptr : &*found;
}

enum class Depth : std::uint8_t { kFirst, kDeeper };
/// What rows have behind `prefix`, "" or an object's path with a dot: the first component alone, or
/// every path that is longer than that. Each once, in the order of the table.
std::vector<std::string_view> names_below(std::string_view prefix, Depth depth) {
  std::vector<std::string_view> names;
  const auto add = [&](std::string_view name) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const Setting& row : settings_table()) {
    if (!row.path.starts_with(prefix)) continue;
    const std::string_view rest = row.path.substr(prefix.size());
    std::size_t end = rest.find('.');
    if (depth == Depth::kFirst) add(rest.substr(0, end));
    while (depth == Depth::kDeeper && end != std::string_view::npos) {
      end = rest.find('.', end + 1);
      add(rest.substr(0, end));
    }
  }
  return names;
}

/// Whether `path` is a field or an object of fields.
bool is_known(std::string_view path) {
  return find_setting(path) != nullptr || !names_below(cat(path, "."), Depth::kFirst).empty();
}

/// @param prefix  of the object that has the field
std::unexpected<Error> unknown_field(std::string_view prefix, std::string_view name) {
  const auto known = names_below(prefix, Depth::kFirst);
  // A dot in a name is not a path.
  if (const std::string path = cat(prefix, name); is_known(path)) {
    return refuse_value("unknown field ", path, "; write ", path.substr(path.rfind('.') + 1),
                        " as a field of the object ", path.substr(0, path.rfind('.')));
  }
  std::string hint = hint_for(name, known, prefix);
  // "logLevel" is log.level written flat.
  const std::string flat = nearest_name(name, names_below(prefix, Depth::kDeeper));
  if (nearest_name(name, known).empty() && !flat.empty())
    hint = cat("; did you mean ", prefix, flat, "?");
  return refuse_value("unknown field ", prefix, printable(name), hint);
}

/// Reads one member of an object of settings.
/// @param prefix  of the object, as for read_fields()
/// @return an error of the member itself; those of members below it are added to `errors`.
Status read_member(const JsonNode& object, const JsonNode& member, const std::string& prefix,
                   Settings& settings, std::vector<Error>& errors);

/// Reads all fields of an object; a wrong one is left out and added to `errors`.
/// @param prefix  "", or the object's own path with a dot behind it
void read_fields(const JsonNode& object, const std::string& prefix, Settings& settings,
                 std::vector<Error>& errors) {
  for (const JsonNode& member : object.children) {
    if (auto done = read_member(object, member, prefix, settings, errors); !done)
      errors.push_back(std::move(done).error());
  }
}

Status read_member(const JsonNode& object, const JsonNode& member, const std::string& prefix,
                   Settings& settings, std::vector<Error>& errors) {
  const std::string path = cat(prefix, member.key);
  if (!is_known(path) || member.key.contains('.')) return unknown_field(prefix, member.key);
  if (std::ranges::count(object.children, member.key, &JsonNode::key) > 1)
    return refuse_value(path, ": field is repeated");
  if (const Setting* setting = find_setting(path); setting != nullptr) {
    const auto value = read_value(setting->kind, member);
    if (!value) return fail(Error{value.error()}.with_context(path));
    setting->set(settings, *value);
    return {};
  }
  if (member.kind != Kind::kObject)
    return fail(unexpected_kind("an object", member).error().with_context(path));
  read_fields(member, cat(path, "."), settings, errors);
  return {};
}

}  // namespace

CheckedSettings check_settings(Settings base, std::string_view text) {
  const auto tree =
      parse_json_tree(text, {.bytes = kMaxSettingsSize, .comments = JsonComments::kIgnore});
  CheckedSettings checked{.settings = std::move(base), .errors = {}};
  if (!tree) {
    checked.errors.push_back(tree.error());
  } else if (tree->kind != Kind::kObject) {
    checked.errors.push_back(unexpected_kind("one object of settings", *tree).error());
  } else {
    read_fields(*tree, "", checked.settings, checked.errors);
  }
  return checked;
}

Result<Settings> merge_settings(Settings base, std::string_view text) {
  CheckedSettings checked = check_settings(std::move(base), text);
  if (!checked.errors.empty()) return fail(std::move(checked.errors.front()));
  return std::move(checked.settings);
}

std::string format_settings(const core::Settings& settings) {
  using nlohmann::ordered_json;
  ordered_json out;
  for (const Setting& row : settings_table()) {
    ordered_json* object = &out;
    std::string_view rest = row.path;
    for (auto dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
      object = &(*object)[std::string{rest.substr(0, dot)}];
      rest.remove_prefix(dot + 1);
    }
    (*object)[std::string{rest}] = ordered_json::parse(format_value(row.kind, row.get(settings)));
  }
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace podqos::codec
