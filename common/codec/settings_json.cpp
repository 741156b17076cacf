#include "common/codec/settings_json.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/codec/json_tree.h"
#include "common/codec/settings_table.h"

namespace podqos::codec {

namespace {

using core::Settings;
using Kind = JsonNode::Kind;

/// What rows have behind `prefix`, "" or an object's path with a dot: every part of a path up to a
/// dot or its end. Each once, in the order of the table.
std::vector<std::string_view> names_below(std::string_view prefix) {
  std::vector<std::string_view> names;
  for (const Setting& row : settings_table()) {
    if (!row.path.starts_with(prefix)) continue;
    const std::string_view rest = row.path.substr(prefix.size());
    for (std::size_t end = 0; end < rest.size(); ++end) {
      end = std::min(rest.find('.', end), rest.size());
      const std::string_view name = rest.substr(0, end);
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

/// The name of a field as the table has it: earlier releases spelt one of these differently.
std::string_view spelling(std::string_view name) {
  return name == "besteffort" ? "bestEffort" : name;
}

/// Fields of a kubelet's configuration that podqos names otherwise.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kKubeletNames{
    {{"systemReserved", "reserved.system"}, {"kubeReserved", "reserved.kube"}}};

/// @param prefix  of the object that has the field
std::unexpected<Error> unknown_field(std::string_view prefix, std::string_view name) {
  for (const auto& [kubelets, ours] : kKubeletNames)
    if (prefix.empty() && name == kubelets)
      return refuse_value("unknown field ", name, "; did you mean ", ours, "?");
  auto known = names_below(prefix);
  const std::string path = cat(prefix, printable(name));
  // A dot in a name is not a path.
  if (std::ranges::find(known, name) != known.end())
    return refuse_value("unknown field ", path, "; write ", path.substr(path.rfind('.') + 1),
                        " as a field of the object ", path.substr(0, path.rfind('.')));
  // "logLevel" is log.level written flat. Where nothing is near, only what the object has is named.
  if (nearest_name(name, known).empty())
    std::erase_if(known, [](std::string_view each) { return each.contains('.'); });
  return refuse_value("unknown field ", path, hint_for(name, known, prefix));
}

/// Reads a field, or checks that it is an object of fields.
/// @param prefix  "", or the path of `object` with a dot behind it
Status read_field(const JsonNode& object, const JsonNode& member, const std::string& prefix,
                  Settings& settings) {
  const std::string path = cat(prefix, spelling(member.key));
  const auto rows = settings_table();
  const auto row = std::ranges::find(rows, path, &Setting::path);
  const bool known = row != rows.end() || !names_below(cat(path, ".")).empty();
  if (!known || member.key.contains('.')) return unknown_field(prefix, member.key);
  const auto named = [](const JsonNode& node) { return spelling(node.key); };
  if (std::ranges::count(object.children, spelling(member.key), named) > 1)
    return refuse_value(path, ": field is repeated");
  if (row == rows.end()) {
    if (member.kind == Kind::kObject) return {};
    return refuse_value(path, ": expected an object, found ", describe(member));
  }
  const auto value = read_value(row->kind, member);
  if (!value) return fail(Error{value.error()}.with_context(path));
  row->set(settings, *value);
  return {};
}

/// Reads all fields of an object; a wrong one is left out.
/// @param prefix  as for read_field()
/// @param text  what was parsed
void read_fields(const JsonNode& object, const std::string& prefix, std::string_view text,
                 CheckedSettings& out) {
  for (const JsonNode& member : object.children) {
    if (auto done = read_field(object, member, prefix, out.settings); !done)
      out.errors.push_back(text.contains('\n') ? std::move(done).error().with_context(
                                                     format_position(text, member.raw_key))
                                               : std::move(done).error());
    else if (member.kind == Kind::kObject)
      read_fields(member, cat(prefix, spelling(member.key), "."), text, out);
  }
}

constexpr std::string_view kRuntimes = "runtimes";

std::unexpected<Error> no_object(const JsonNode& root) {
  return refuse_value("expected one object of settings, found ", describe(root));
}

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

/// Whether JSON behind a syntax error may set the field, perhaps misspelt or once more. Template
/// and notes name it in lines of comment.
bool may_set_runtimes(std::string_view rest) {
  while (!rest.empty()) {
    std::string_view line = read_until(rest, '\n');
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (!line.starts_with("//") && (line.contains("untime") || line.contains('['))) return true;
  }
  return false;
}

}  // namespace

CheckedSettings check_settings(Settings base, std::string_view text) {
  const auto [tree, error] =
      parse_json_prefix(text, {.bytes = kMaxSettingsSize, .comments = JsonComments::kIgnore});
  CheckedSettings checked{.settings = std::move(base), .errors = {}};
  if (tree.kind == Kind::kObject)
    read_fields(tree, "", text, checked);
  else if (!error)
    checked.errors.push_back(no_object(tree).error());
  if (error) checked.errors.push_back(*error);
  return checked;
}

Result<Settings> merge_settings(Settings base, std::string_view text) {
  CheckedSettings checked = check_settings(std::move(base), text);
  if (!checked.errors.empty()) return fail(std::move(checked.errors.front()));
  return std::move(checked.settings);
}

Result<std::optional<std::vector<std::string>>> salvage_runtimes(std::string_view text) {
  const auto [tree, error] =
      parse_json_prefix(text, {.bytes = kMaxSettingsSize, .comments = JsonComments::kIgnore});
  const auto found = std::ranges::find(tree.children, kRuntimes, &JsonNode::key);
  const bool is_set = found != tree.children.end();
  const std::string_view rest =
      tree.children.empty() ? text : std::string_view{tree.children.back().raw.end(), text.end()};
  if (error && may_set_runtimes(rest)) return fail(*error);
  if (!error && tree.kind != Kind::kObject) return no_object(tree);
  if (!is_set) {
    const JsonNode* doubtful = find_doubtful(tree);
    if (doubtful == nullptr) return std::nullopt;
    return refuse_value("field ", printable(doubtful->key), " may be meant as ", kRuntimes);
  }
  if (std::ranges::count(tree.children, kRuntimes, &JsonNode::key) > 1)
    return refuse_value(kRuntimes, ": field is repeated");
  auto paths = read_value(kRuntimePaths, *found);
  if (!paths) return fail(std::move(paths).error().with_context(kRuntimes));
  return std::get<std::vector<std::string>>(*std::move(paths));
}

std::string format_settings(const core::Settings& settings) {
  using nlohmann::ordered_json;
  ordered_json out;
  for (const Setting& row : settings_table()) {
    std::string pointer = cat("/", row.path);
    std::ranges::replace(pointer, '.', '/');
    out[ordered_json::json_pointer{pointer}] =
        ordered_json::parse(format_value(row.kind, row.get(settings)));
  }
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

std::string format_changed_settings(const Settings& settings) {
  const Settings built_in;
  std::string out = "{";
  for (const Setting& row : settings_table()) {
    const SettingValue value = row.get(settings);
    if (value == row.get(built_in)) continue;
    out += cat(out.size() > 1 ? "," : "", "\"", row.path, "\":", format_value(row.kind, value));
  }
  return out += '}';
}

Settings read_changed_settings(const JsonNode& object) {
  Settings settings;
  for (const JsonNode& member : object.children) {
    const auto rows = settings_table();
    const auto row = std::ranges::find(rows, member.key, &Setting::path);
    const auto value =
        row == rows.end() ? fail(ErrorCode::kNotFound, "") : read_value(row->kind, member);
    if (value) row->set(settings, *value);
  }
  return settings;
}

}  // namespace podqos::codec
