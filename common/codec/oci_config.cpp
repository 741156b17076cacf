#include "common/codec/oci_config.h"

#include <algorithm>
#include <bitset>
#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>
#include <utility>

#include "common/base/text.h"
#include "common/codec/annotations.h"
#include "common/codec/json_text.h"
#include "common/codec/json_tree.h"

namespace podqos::codec {

namespace {

using enum ConfigNode;
using Kind = JsonNode::Kind;

/// Basename of a hook by which podqos recognises its own.
constexpr std::string_view kHookName = "podqos-hook";
/// The numeric resources and the facts they set.
struct ResourceField {
  ConfigNode node;
  std::optional<std::int64_t> core::EngineResources::* field;
};
constexpr std::array<ResourceField, 8> kResourceFields{{
    {kCpuShares, &core::EngineResources::cpu_shares},
    {kCpuQuota, &core::EngineResources::cpu_quota},
    {kCpuPeriod, &core::EngineResources::cpu_period},
    {kCpuRealtimeRuntime, &core::EngineResources::cpu_realtime_runtime},
    {kMemoryLimit, &core::EngineResources::memory_limit},
    {kMemoryReservation, &core::EngineResources::memory_reservation},
    {kMemorySwap, &core::EngineResources::memory_swap},
    {kPidsLimit, &core::EngineResources::pids_limit},
}};

bool is_podqos_hook(std::string_view path) {
  return path.substr(path.rfind('/') + 1) == kHookName;
}

std::string_view format_node_type(NodeType type) {
  switch (type) {
    case NodeType::kObject: return "an object";
    case NodeType::kArray: return "an array";
    case NodeType::kSigned: return "an integer";
    case NodeType::kUnsigned: return "a non-negative integer";
    case NodeType::kString: return "a string";
  }
  return "";
}

/// The number as nlohmann_json reads integers: of up to 64 bits, a fraction or exponent makes it a
/// float. What only fits in 64 unsigned bits becomes 2^63-1.
std::optional<std::int64_t> integer_of(const JsonNode& value) {
  if (value.kind != Kind::kNumber) return std::nullopt;
  const std::string_view digits = value.text;
  if (const auto number = parse_int(digits)) return number;
  std::uint64_t large = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), large);
  if (error != std::errc{} || end != digits.end()) return std::nullopt;
  return kInt64Max;
}

/// Whether a value has the type that the runtime-spec requires.
bool fits(NodeType type, const JsonNode& value) {
  switch (type) {
    case NodeType::kSigned: return integer_of(value).has_value();
    case NodeType::kUnsigned: return integer_of(value).value_or(-1) >= 0;
    case NodeType::kString: return value.kind == Kind::kString;
    case NodeType::kObject: return value.kind == Kind::kObject;
    case NodeType::kArray: return value.kind == Kind::kArray;
  }
  return false;
}

}  // namespace

/// Follows the tree through the schema and ignores members that podqos does not know.
class ConfigReader {
 public:
  ConfigReader(std::string_view text, MemberNames names) : text_(text), names_(names) {}

  /// Reads the value of `node`, and what is in it.
  Status read(ConfigNode node, const JsonNode& value);

  OciConfig release() { return std::move(config_); }

 private:
  Status read_members(ConfigNode node, const JsonNode& object);
  /// Reads a map: annotations that podqos knows, and all of `unified`.
  Status read_map(ConfigNode node, const JsonNode& object);
  Status read_elements(ConfigNode node, const JsonNode& array);
  Status read_hugepage_limit(const JsonNode& object);
  Status read_annotation(const JsonNode& member);
  Status read_cgroups_path(const JsonNode& value);
  void set_integer(ConfigNode node, std::int64_t value);
  void note_hook() {
    (hook_list_ == kPoststop ? config_.has_poststop_hook : config_.has_create_hook) = true;
  }

  /// @param part  the name or value that the error is about
  [[nodiscard]] std::unexpected<Error> refuse(ConfigNode node, std::string_view part,
                                              std::string_view problem,
                                              ErrorCode code = ErrorCode::kInvalidArgument) const {
    return fail(code, cat(format_path(node), " at ", format_position(text_, part), ": ", problem));
  }

  std::string_view text_;
  MemberNames names_;
  OciConfig config_;
  ConfigNode hook_list_ = kOther;  ///< list of the hook that is being read
};

Status ConfigReader::read(ConfigNode node, const JsonNode& value) {
  const NodeType type = spec_of(node).type;
  const bool nullable = node != kRoot && node != kAnnotation && node != kUnifiedValue;
  if (!fits(type, value) && !(nullable && value.is_null())) {
    const bool number = value.kind == Kind::kNumber;
    return refuse(node, value.raw,
                  cat("expected ", format_node_type(type), ", found ",
                      number ? printable(value.text) : format_kind(value.kind)));
  }
  const auto begin = static_cast<std::size_t>(value.raw.data() - text_.data());
  config_.places_.at(index_of(node)) = {.value = ByteRange{begin, begin + value.raw.size()},
                                        .null = value.is_null(),
                                        .empty = value.children.empty()};
  if (value.is_null() || node == kEdits) return {};
  if (node == kAnnotations || node == kUnified) return read_map(node, value);
  if (node == kHugepageLimit) return read_hugepage_limit(value);
  if (node == kAnnotation) return read_annotation(value);
  if (node == kCgroupsPath) return read_cgroups_path(value);
  if (node == kHookPath && is_podqos_hook(value.text)) note_hook();
  if (type == NodeType::kObject) return read_members(node, value);
  if (type == NodeType::kArray) return read_elements(node, value);
  if (const auto number = integer_of(value)) set_integer(node, *number);
  return {};
}

Status ConfigReader::read_members(ConfigNode node, const JsonNode& object) {
  std::bitset<kConfigNodes> seen;
  for (const JsonNode& member : object.children) {
    const ConfigNode known = find_member(node, member.key, names_);
    if (known == kOther) continue;
    if (seen.test(index_of(known))) return refuse(known, member.raw_key, "member is repeated");
    seen.set(index_of(known));
    if (Status status = read(known, member); !status) return status;
  }
  return {};
}

Status ConfigReader::read_map(ConfigNode node, const JsonNode& object) {
  core::ContainerFacts& facts = config_.facts;
  for (const JsonNode& member : object.children) {
    const bool annotation = node == kAnnotations;
    if (annotation && !is_known_annotation(member.key)) continue;
    const std::string key{member.key};
    if (annotation ? facts.annotations.contains(key) : facts.resources.unified.contains(key))
      return refuse(node, member.raw_key, cat("\"", printable(key), "\" is repeated"));
    const ConfigNode value = element_of(node);
    if (Status status = read(value, member); !status) return status;
    if (!annotation) facts.resources.unified.emplace(key, member.text);
  }
  return {};
}

Status ConfigReader::read_elements(ConfigNode node, const JsonNode& array) {
  const ConfigNode element = element_of(node);
  if (element == kHook) hook_list_ = node;
  // Only args[0] names a program; later arguments may be anything.
  if (node == kHookArgs && !array.children.empty() && is_podqos_hook(array.children.front().text))
    note_hook();
  for (const JsonNode& child : array.children) {
    if (Status status = read(element, child); !status) return status;
  }
  return {};
}

Status ConfigReader::read_hugepage_limit(const JsonNode& object) {
  if (Status status = read_members(kHugepageLimit, object); !status) return status;
  const auto find = [&](ConfigNode wanted) {
    return std::ranges::find_if(object.children, [&](const JsonNode& member) {
      return find_member(kHugepageLimit, member.key, names_) == wanted;
    });
  };
  const auto size = find(kHugepageSize);
  if (size == object.children.end() || size->text.empty()) return {};
  const auto limit = find(kHugepageBytes);
  const auto bytes = limit == object.children.end() ? 0 : integer_of(*limit).value_or(0);
  config_.facts.resources.hugepages.insert_or_assign(std::string{size->text}, Bytes{bytes});
  return {};
}

Status ConfigReader::read_annotation(const JsonNode& member) {
  if (member.text.size() > kMaxAnnotationSize) {
    return refuse(kAnnotation, member.raw,
                  cat("annotation \"", printable(member.key), "\" has ", member.text.size(),
                      " bytes, at most ", kMaxAnnotationSize, " are read"),
                  ErrorCode::kTooLarge);
  }
  if (config_.facts.annotations.size() == kMaxKnownAnnotations) {
    return refuse(kAnnotation, member.raw,
                  cat("more than ", kMaxKnownAnnotations, " annotations that podqos reads"),
                  ErrorCode::kTooLarge);
  }
  config_.facts.annotations.emplace(member.key, member.text);
  return {};
}

Status ConfigReader::read_cgroups_path(const JsonNode& value) {
  if (std::ranges::any_of(value.text, is_control))
    return refuse(kCgroupsPath, value.raw, "path contains control bytes");
  if (value.text.size() > kMaxCgroupsPathSize)
    return refuse(kCgroupsPath, value.raw, "path is too long", ErrorCode::kTooLarge);
  if (!value.text.empty()) config_.facts.cgroups_path = value.text;  // "": unset in Go
  return {};
}

void ConfigReader::set_integer(ConfigNode node, std::int64_t value) {
  if (node == kOomScoreAdj) config_.facts.oom_score_adj = value;
  // 0 means unset, as in opencontainers/cgroups.
  const auto* const row = std::ranges::find(kResourceFields, node, &ResourceField::node);
  if (row != kResourceFields.end() && value != 0) config_.facts.resources.*(row->field) = value;
}

Result<OciConfig> OciConfig::parse(std::string_view text, MemberNames names) {
  PODQOS_ASSIGN(auto tree,
                parse_json_tree(text, {.bytes = kMaxConfigSize, .is_read = is_container_name}));
  ConfigReader reader{text, names};
  if (Status status = reader.read(kRoot, tree); !status) return fail(std::move(status).error());
  return reader.release();
}

}  // namespace podqos::codec
