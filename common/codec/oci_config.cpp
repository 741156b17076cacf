#include "common/codec/oci_config.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <system_error>
#include <utility>

#include "common/base/text.h"
#include "common/codec/annotations.h"
#include "common/codec/json_place.h"
#include "common/codec/json_text.h"
#include "common/core/cgroups/naming.h"

namespace podqos::codec {

namespace {

using Kind = JsonNode::Kind;
using core::EngineResources;

/// Names of members, separated by spaces, behind the name of the object that they are in: "" for
/// the root and for elements.
using NamedMembers = std::pair<std::string_view, std::string_view>;
/// The objects and lists that are read.
constexpr std::array<NamedMembers, 5> kContainers{{
    {"", "process annotations hooks linux podqos.io/edits args"},  // args of a hook
    {"hooks", "prestart createRuntime poststop"},
    {"process", "env"},
    {"linux", "resources namespaces"},
    {"resources", "cpu memory pids hugepageLimits unified"},
}};
/// The other values that are read.
constexpr std::array<NamedMembers, 5> kScalars{{
    {"process", "oomScoreAdj"},
    {"linux", "cgroupsPath"},
    {"cpu", "shares quota period realtimeRuntime"},
    {"memory", "limit reservation swap"},
    {"pids", "limit"},
}};

/// Makes one of each two members of this name; see merge_members().
void merge_repeated(std::vector<JsonNode>& members, std::string_view name) {
  JsonNode* former = nullptr;
  for (JsonNode& each : members) {
    if (!is_named(each.key, name, MemberNames::kAnyCase)) continue;
    const bool merged =
        former != nullptr &&
        (former->is_null() || (former->kind == each.kind && each.kind != Kind::kArray));
    if (merged) {
      // Moved, and to the longer list: there may be as many as the text has room for.
      std::ranges::move(each.children, std::back_inserter(former->children));
      each.children = std::move(former->children);
      former->raw = {};
    }
    former = &each;
  }
  std::erase_if(members, [](const JsonNode& each) { return each.raw.empty(); });
}

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
    const bool is_repeated = out.unified.contains(each.key);
    if (each.is_null() && !is_repeated) continue;
    const JsonPlace value = unified.child(each);
    if (is_repeated) return value.refuse_repeated();
    PODQOS_TRY(value.expect(Kind::kString));
    out.unified.emplace(each.key, each.text);
  }
  return {};
}

/// ContainerFacts::shared_hostname. What podqos need not know to manage a container refuses none.
std::string shared_hostname(const JsonNode& root, MemberNames names) {
  const JsonNode* const namespaces = root.at("/linux/namespaces", names);
  const JsonNode* const env = root.at("/process/env", names);
  if (namespaces == nullptr || env == nullptr) return {};
  const auto is_shared = [names](const JsonNode& each) {
    const JsonNode* const type = each.find("type", names);
    const JsonNode* const path = each.find("path", names);
    return type != nullptr && type->text == "uts" && path != nullptr && !path->text.empty();
  };
  if (std::ranges::none_of(namespaces->children, is_shared)) return {};
  constexpr std::string_view kHostname = "HOSTNAME=";
  for (const JsonNode& each : env->children) {
    if (!each.text.starts_with(kHostname)) continue;
    const std::string_view name = each.text.substr(kHostname.size());
    return core::check_cgroup_component(name) ? std::string{name} : std::string{};
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

/// Whether a list of hooks has one of podqos, by the basename of its program.
Result<bool> has_own_hook(const JsonPlace& hooks, std::string_view stage) {
  const auto is_own = [](std::string_view path) {
    return path.substr(path.rfind('/') + 1) == "podqos-hook";
  };
  bool found = false;
  PODQOS_ASSIGN(const auto list, hooks.member(stage, Kind::kArray));
  for (const JsonNode& each : list.children()) {
    if (each.is_null()) continue;
    const JsonPlace hook = list.child(each);
    PODQOS_TRY(hook.expect(Kind::kObject));
    PODQOS_ASSIGN(const auto path, hook.member("path", Kind::kString));
    PODQOS_ASSIGN(const auto args, hook.member("args", Kind::kArray));
    // Only args[0] names a program; later arguments may be anything.
    const bool named = !args.children().empty() && is_own(args.children().front().text);
    found = found || named || is_own(path.text());
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

/// podqos's bounds; the runtime-spec has none.
constexpr std::size_t kMaxIdSize = 1024;
constexpr std::size_t kMaxBundleSize = 4096;

/// Printable ASCII without space: an id appears in log lines.
bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

Result<OciState> read_state(const JsonPlace& root) {
  PODQOS_TRY(root.expect(Kind::kObject));
  PODQOS_ASSIGN(const auto id, root.member("id", Kind::kString));
  if (id.text().empty()) return refuse_value("id is missing or empty");
  if (id.text().size() > kMaxIdSize) return id.refuse(cat("longer than ", kMaxIdSize, " bytes"));
  if (!is_printable(id.text()))
    return id.refuse(cat("\"", printable(id.text()), "\" contains unprintable bytes"));
  PODQOS_ASSIGN(const auto pid, root.integer("pid", 0, std::numeric_limits<std::int32_t>::max()));
  PODQOS_ASSIGN(const auto bundle, root.member("bundle", Kind::kString));
  if (bundle.text().size() > kMaxBundleSize)
    return bundle.refuse(cat("longer than ", kMaxBundleSize, " bytes"));
  if (bundle.text().contains('\0')) return bundle.refuse("contains a NUL byte");
  PODQOS_ASSIGN(const auto object, root.member("annotations", Kind::kObject));
  OciState state;
  PODQOS_ASSIGN(state.facts.annotations, read_known_annotations(object));
  state.facts.id = id.text();
  state.facts.bundle = bundle.text();
  // crun writes 0 in poststop, where runc omits the member.
  if (pid.value_or(0) != 0) state.pid = Pid{*pid};
  return state;
}

}  // namespace

bool is_container_name(std::string_view parent, std::string_view name) {
  for (auto [known_parent, names] : kContainers) {
    if (!is_named(parent, known_parent, MemberNames::kAnyCase)) continue;
    while (!names.empty())
      if (is_named(name, read_until(names, ' '), MemberNames::kAnyCase)) return true;
  }
  return false;
}

void merge_members(JsonNode& object) {
  for (const std::span<const NamedMembers> table : {std::span{kContainers}, std::span{kScalars}}) {
    for (auto [name, members] : table)
      while (is_named(object.key, name, MemberNames::kAnyCase) && !members.empty())
        merge_repeated(object.children, read_until(members, ' '));
  }
  for (JsonNode& member : object.children)
    if (member.kind == Kind::kObject) merge_members(member);
}

Result<OciConfig> OciConfig::parse(std::string_view text, MemberNames names) {
  OciConfig config;
  config.text = text;
  config.names = names;
  PODQOS_ASSIGN(config.tree, parse_json_tree(text, {.bytes = kMaxConfigSize,
                                                    .rules = JsonRules::kGo,
                                                    .is_read = is_container_name}));
  if (names == MemberNames::kAnyCase) merge_members(config.tree);
  const JsonPlace root{config.tree, "config.json", text, names};
  PODQOS_TRY(root.expect(Kind::kObject));
  PODQOS_ASSIGN(const auto process, root.member("process", Kind::kObject));
  PODQOS_ASSIGN(config.facts.oom_score_adj, read_integer(process, "oomScoreAdj"));
  PODQOS_ASSIGN(const auto annotations, root.member("annotations", Kind::kObject));
  PODQOS_ASSIGN(config.facts.annotations, read_known_annotations(annotations));
  PODQOS_TRY(read_linux(root, config.facts));
  config.facts.shared_hostname = shared_hostname(config.tree, names);
  PODQOS_TRY(read_hooks(root, config));
  PODQOS_TRY(root.member(kEditRecord, Kind::kArray));
  return config;
}

Result<core::EngineResources> parse_resources(std::string_view text, MemberNames names) {
  PODQOS_ASSIGN(auto tree,
                parse_json_tree(text, {.bytes = kMaxConfigSize, .rules = JsonRules::kGo}));
  // What is read in it is known by the name of the member that it is in config.json.
  tree.key = "resources";
  if (names == MemberNames::kAnyCase) merge_members(tree);
  const JsonPlace resources{tree, "resources", text, names};
  PODQOS_TRY(resources.expect(Kind::kObject));
  EngineResources out;
  PODQOS_TRY(read_resources(resources, out));
  return out;
}

Result<OciState> parse_oci_state(std::string_view text) {
  const auto tree = parse_json_tree(text, {.bytes = kMaxStateSize});
  auto state = tree ? read_state(JsonPlace{*tree, "state", text}) : fail(tree.error());
  if (!state) return fail(std::move(state).error().with_context("OCI state"));
  return state;
}

}  // namespace podqos::codec
