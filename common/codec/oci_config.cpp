#include "common/codec/oci_config.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include "common/base/text.h"
#include "common/codec/annotations.h"
#include "common/codec/json_place.h"
#include "common/codec/json_text.h"

namespace podqos::codec {

namespace {

using Kind = JsonNode::Kind;
using core::EngineResources;

/// Basename of a hook by which podqos recognises its own.
constexpr std::string_view kHookName = "podqos-hook";

/// The objects and lists that are read, after their parent's name: "" for the root and elements.
constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kContainers{{
    {"", "process"},
    {"", "annotations"},
    {"", "hooks"},
    {"", "linux"},
    {"", kEditRecord},
    {"", "args"},  // of a hook
    {"hooks", "prestart"},
    {"hooks", "createRuntime"},
    {"hooks", "poststop"},
    {"linux", "resources"},
    {"resources", "cpu"},
    {"resources", "memory"},
    {"resources", "pids"},
    {"resources", "hugepageLimits"},
    {"resources", "unified"},
}};

/// A number in linux.resources, and the fact that it is.
struct ResourceField {
  std::string_view group;
  std::string_view name;
  std::int64_t least;
  std::optional<std::int64_t> EngineResources::* field;
};
constexpr std::array<ResourceField, 8> kResourceFields{{
    {"cpu", "shares", 0, &EngineResources::cpu_shares},
    {"cpu", "quota", kInt64Min, &EngineResources::cpu_quota},
    {"cpu", "period", 0, &EngineResources::cpu_period},
    {"cpu", "realtimeRuntime", kInt64Min, &EngineResources::cpu_realtime_runtime},
    {"memory", "limit", kInt64Min, &EngineResources::memory_limit},
    {"memory", "reservation", kInt64Min, &EngineResources::memory_reservation},
    {"memory", "swap", kInt64Min, &EngineResources::memory_swap},
    {"pids", "limit", kInt64Min, &EngineResources::pids_limit},
}};

/// As JsonPlace::integer(); what only fits in 64 bits without a sign becomes 2^63-1.
Result<std::optional<std::int64_t>> read_integer(const JsonPlace& object, std::string_view name,
                                                 std::int64_t least = kInt64Min) {
  PODQOS_ASSIGN(const auto place, object.member(name));
  if (place && place.node()->kind == Kind::kNumber) {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(place.text().begin(), place.text().end(), number);
    if (error == std::errc{} && end == place.text().end() &&
        number > static_cast<std::uint64_t>(kInt64Max))
      return kInt64Max;
  }
  return object.integer(name, least);
}

Status read_hugepages(const JsonPlace& resources, core::HugePageLimits& limits) {
  PODQOS_ASSIGN(const auto list, resources.member("hugepageLimits", Kind::kArray));
  for (const JsonNode& each : list.children()) {
    if (each.is_null()) continue;  // as Go reads it
    const JsonPlace limit = list.child(each);
    PODQOS_TRY(limit.expect(Kind::kObject));
    std::string size;
    PODQOS_TRY(limit.read_text("pageSize", size));
    PODQOS_ASSIGN(const auto bytes, read_integer(limit, "limit", 0));
    if (!size.empty()) limits.insert_or_assign(std::move(size), Bytes{bytes.value_or(0)});
  }
  return {};
}

Status read_resources(const JsonPlace& resources, EngineResources& out) {
  for (const auto& [group, name, least, field] : kResourceFields) {
    PODQOS_ASSIGN(const auto place, resources.member(group, Kind::kObject));
    PODQOS_ASSIGN(const auto number, read_integer(place, name, least));
    // 0 means unset, as in opencontainers/cgroups.
    if (number.value_or(0) != 0) out.*field = number;
  }
  PODQOS_TRY(read_hugepages(resources, out.hugepages));
  PODQOS_ASSIGN(const auto unified, resources.member("unified", Kind::kObject));
  for (const JsonNode& each : unified.children()) {
    const JsonPlace value = unified.child(each);
    PODQOS_TRY(value.expect(Kind::kString));
    if (!out.unified.emplace(each.key, each.text).second) return value.refuse_repeated();
  }
  return {};
}

Status read_linux(const JsonPlace& root, core::ContainerFacts& facts) {
  PODQOS_ASSIGN(const auto linux_part, root.member("linux", Kind::kObject));
  PODQOS_ASSIGN(const auto path, linux_part.member("cgroupsPath", Kind::kString));
  if (std::ranges::any_of(path.text(), is_control))
    return path.refuse("path contains control bytes");
  if (path.text().size() > kMaxCgroupsPathSize)
    return path.refuse("path is too long", ErrorCode::kTooLarge);
  if (!path.text().empty()) facts.cgroups_path = path.text();  // "": unset in Go
  PODQOS_ASSIGN(const auto resources, linux_part.member("resources", Kind::kObject));
  return read_resources(resources, facts.resources);
}

bool is_podqos_hook(std::string_view path) {
  return path.substr(path.rfind('/') + 1) == kHookName;
}

/// Whether a list of hooks has one of podqos.
Result<bool> has_own_hook(const JsonPlace& hooks, std::string_view stage) {
  bool found = false;
  PODQOS_ASSIGN(const auto list, hooks.member(stage, Kind::kArray));
  for (const JsonNode& each : list.children()) {
    if (each.is_null()) continue;
    const JsonPlace hook = list.child(each);
    PODQOS_TRY(hook.expect(Kind::kObject));
    PODQOS_ASSIGN(const auto path, hook.member("path", Kind::kString));
    PODQOS_ASSIGN(const auto args, hook.member("args", Kind::kArray));
    // Only args[0] names a program; later arguments may be anything.
    const bool named = !args.children().empty() && is_podqos_hook(args.children().front().text);
    found = found || named || is_podqos_hook(path.text());
  }
  return found;
}

Status read_hooks(const JsonPlace& root, OciConfig& config) {
  PODQOS_ASSIGN(const auto hooks, root.member("hooks", Kind::kObject));
  PODQOS_ASSIGN(const bool prestart, has_own_hook(hooks, "prestart"));
  PODQOS_ASSIGN(const bool create, has_own_hook(hooks, "createRuntime"));
  PODQOS_ASSIGN(config.has_poststop_hook, has_own_hook(hooks, "poststop"));
  config.has_create_hook = prestart || create;
  return {};
}

}  // namespace

bool is_container_name(std::string_view parent, std::string_view name) {
  const auto is = [](std::string_view key, std::string_view known) {
    return is_named(key, known, MemberNames::kAnyCase);
  };
  return std::ranges::any_of(
      kContainers, [&](const auto& row) { return is(name, row.second) && is(parent, row.first); });
}

const JsonNode* OciConfig::find(std::string_view pointer) const {
  const JsonNode* found = &tree;
  while (found != nullptr && !pointer.empty()) {
    pointer.remove_prefix(1);
    const std::string_view name = pointer.substr(0, pointer.find('/'));
    found = found->find(name, names);
    pointer.remove_prefix(name.size());
  }
  return found;
}

Result<OciConfig> OciConfig::parse(std::string_view text, MemberNames names) {
  OciConfig config;
  config.text = text;
  config.names = names;
  PODQOS_ASSIGN(config.tree,
                parse_json_tree(text, {.bytes = kMaxConfigSize, .is_read = is_container_name}));
  const JsonPlace root{config.tree, "config.json", text, names};
  PODQOS_TRY(root.expect(Kind::kObject));
  PODQOS_ASSIGN(const auto process, root.member("process", Kind::kObject));
  PODQOS_ASSIGN(config.facts.oom_score_adj, read_integer(process, "oomScoreAdj"));
  PODQOS_ASSIGN(const auto annotations, root.member("annotations", Kind::kObject));
  PODQOS_ASSIGN(config.facts.annotations, read_known_annotations(annotations));
  PODQOS_TRY(read_linux(root, config.facts));
  PODQOS_TRY(read_hooks(root, config));
  PODQOS_TRY(root.member(kEditRecord, Kind::kArray));
  return config;
}

}  // namespace podqos::codec
