#include "common/codec/oci_schema.h"

#include <algorithm>
#include <array>
#include <utility>

namespace podqos::codec {

namespace {

using enum ConfigNode;

/// OCI runtime-spec config.md and config-linux.md. An element of any hook list has kHook as its
/// node.
constexpr std::array<NodeSpec, kConfigNodes> kSchema{{
    {kRoot, kOther, "", NodeType::kObject},
    {kEdits, kRoot, kEditRecord, NodeType::kArray},
    {kProcess, kRoot, "process", NodeType::kObject},
    {kOomScoreAdj, kProcess, "oomScoreAdj", NodeType::kSigned},
    {kAnnotations, kRoot, "annotations", NodeType::kObject},
    {kAnnotation, kAnnotations, "", NodeType::kString},
    {kHooks, kRoot, "hooks", NodeType::kObject},
    {kPrestart, kHooks, "prestart", NodeType::kArray},
    {kCreateRuntime, kHooks, "createRuntime", NodeType::kArray},
    {kPoststop, kHooks, "poststop", NodeType::kArray},
    {kHook, kHooks, "", NodeType::kObject},
    {kHookPath, kHook, "path", NodeType::kString},
    {kHookArgs, kHook, "args", NodeType::kArray},
    {kHookArg, kHookArgs, "", NodeType::kString},
    {kLinux, kRoot, "linux", NodeType::kObject},
    {kCgroupsPath, kLinux, "cgroupsPath", NodeType::kString},
    {kResources, kLinux, "resources", NodeType::kObject},
    {kCpu, kResources, "cpu", NodeType::kObject},
    {kCpuShares, kCpu, "shares", NodeType::kUnsigned},
    {kCpuQuota, kCpu, "quota", NodeType::kSigned},
    {kCpuPeriod, kCpu, "period", NodeType::kUnsigned},
    {kCpuRealtimeRuntime, kCpu, "realtimeRuntime", NodeType::kSigned},
    {kMemory, kResources, "memory", NodeType::kObject},
    {kMemoryLimit, kMemory, "limit", NodeType::kSigned},
    {kMemoryReservation, kMemory, "reservation", NodeType::kSigned},
    {kMemorySwap, kMemory, "swap", NodeType::kSigned},
    {kPids, kResources, "pids", NodeType::kObject},
    {kPidsLimit, kPids, "limit", NodeType::kSigned},
    {kHugepageLimits, kResources, "hugepageLimits", NodeType::kArray},
    {kHugepageLimit, kHugepageLimits, "", NodeType::kObject},
    {kHugepageSize, kHugepageLimit, "pageSize", NodeType::kString},
    {kHugepageBytes, kHugepageLimit, "limit", NodeType::kUnsigned},
    {kUnified, kResources, "unified", NodeType::kObject},
    {kUnifiedValue, kUnified, "", NodeType::kString},
}};

/// spec_of() indexes the table, and SplicePlanner relies on the order.
constexpr bool in_order() {
  for (std::size_t i = 0; i < kSchema.size(); ++i) {
    if (index_of(kSchema.at(i).node) != i) return false;
    if (i > 0 && index_of(kSchema.at(i).parent) >= i) return false;
  }
  return true;
}
static_assert(in_order(), "rows are at their node's index, parents before members");

/// Removes the first character, folded as Unicode does it to a lower case letter if it is one.
char take_folded(std::string_view& name) {
  // The only characters beside capitals that fold to ASCII letters.
  constexpr std::string_view kLongS = "\xc5\xbf";
  constexpr std::string_view kKelvin = "\xe2\x84\xaa";
  for (const auto& [text, letter] : {std::pair{kLongS, 's'}, std::pair{kKelvin, 'k'}}) {
    if (!name.starts_with(text)) continue;
    name.remove_prefix(text.size());
    return letter;
  }
  const char c = name.front();
  name.remove_prefix(1);
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

const NodeSpec& spec_of(ConfigNode node) {
  return kSchema.at(index_of(node));
}

bool is_member_name(std::string_view name, std::string_view known, MemberNames names) {
  if (name == known || names == MemberNames::kExact) return name == known;
  while (!name.empty() && !known.empty()) {
    if (take_folded(name) != take_folded(known)) return false;
  }
  return name.empty() && known.empty();
}

ConfigNode find_member(ConfigNode parent, std::string_view name, MemberNames names) {
  const auto* const row = std::ranges::find_if(kSchema, [&](const NodeSpec& spec) {
    return spec.parent == parent && !spec.name.empty() && is_member_name(name, spec.name, names);
  });
  return row == kSchema.end() ? kOther : row->node;
}

bool is_container_name(std::string_view parent, std::string_view name) {
  constexpr auto kAny = MemberNames::kAnyCase;
  return std::ranges::any_of(kSchema, [&](const NodeSpec& spec) {
    return (spec.type == NodeType::kObject || spec.type == NodeType::kArray) &&
           spec.parent != kOther && is_member_name(name, spec.name, kAny) &&
           is_member_name(parent, spec_of(spec.parent).name, kAny);
  });
}

ConfigNode element_of(ConfigNode node) {
  // kHook has one parent in the schema, but three lists contain it.
  if (node == kPrestart || node == kCreateRuntime || node == kPoststop) return kHook;
  const auto* const row = std::ranges::find_if(
      kSchema, [&](const NodeSpec& spec) { return spec.parent == node && spec.name.empty(); });
  return row == kSchema.end() ? kOther : row->node;
}

std::string format_path(ConfigNode node) {
  if (node == kRoot) return "config.json";
  const NodeSpec& spec = spec_of(node);
  const std::string parent = spec.parent == kRoot ? "" : format_path(spec.parent);
  if (spec.name.empty()) return parent + "[]";
  return parent.empty() ? std::string{spec.name} : parent + "." + std::string{spec.name};
}

}  // namespace podqos::codec
