#include "common/codec/oci_config.h"

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/text.h"
#include "common/codec/annotations.h"
#include "common/codec/json_events.h"
#include "common/codec/json_plain.h"
#include "common/codec/json_text.h"

namespace podqos::codec {

namespace {

using enum ConfigNode;

/// Basename of a hook by which podqos recognises its own.
constexpr std::string_view kHookName = "podqos-hook";
constexpr std::string_view kWhiteSpace = " \t\r\n";
constexpr std::string_view kNumberBytes = "+-.0123456789Ee";

/// The numeric resources and the facts they set.
struct ResourceField {
  ConfigNode node;
  std::optional<std::int64_t> core::EngineResources::* field;
};
constexpr std::array<ResourceField, 7> kResourceFields{{
    {kCpuShares, &core::EngineResources::cpu_shares},
    {kCpuQuota, &core::EngineResources::cpu_quota},
    {kCpuPeriod, &core::EngineResources::cpu_period},
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

/// Whether a scalar has the type that the runtime-spec requires.
bool fits(NodeType type, const JsonScalar& value) {
  switch (type) {
    case NodeType::kSigned: return value.kind == JsonKind::kInteger;
    case NodeType::kUnsigned: return value.kind == JsonKind::kInteger && value.integer >= 0;
    case NodeType::kString: return value.kind == JsonKind::kString;
    case NodeType::kObject:
    case NodeType::kArray: break;
  }
  return false;
}

}  // namespace

/// Follows the parser's events through the schema and skips members that podqos does not know.
class ConfigReader {
 public:
  explicit ConfigReader(JsonCursor& cursor) : cursor_(cursor) { frames_.reserve(kMaxJsonDepth); }

  Status scalar(JsonScalar& value);
  Status begin(JsonKind kind);
  Status end();
  Status key(std::string& name);

  OciConfig release() { return std::move(config_); }

 private:
  /// An open object or array.
  struct Frame {
    ConfigNode node = kOther;
    bool array = false;
    bool empty = true;
    std::size_t begin = 0;
    std::string key;  ///< in maps, the name of the member whose value comes next
  };
  /// The element of hugepageLimits that is being read.
  struct HugepageLimit {
    std::string size;
    Bytes limit;
  };

  ConfigNode enter();
  /// Stores the position of a member's value.
  void note_scalar_place(ConfigNode node, bool null);
  Status set_text(ConfigNode node, std::string text);
  void set_integer(ConfigNode node, std::int64_t value);
  Status set_annotation(std::string text);
  Status set_cgroups_path(std::string text);
  void note_hook();
  /// Allows the members of a node to appear again.
  void forget_members(ConfigNode node);
  /// Finds the member of a struct; refuses repeated and case-folded names.
  Status known_key(Frame& frame, std::string& name);
  /// Finds the member of a map: annotations that podqos reads, and all of `unified`.
  Status map_key(Frame& frame, std::string& name);
  /// Skips an unknown member without parsing it, if it is plain JSON.
  void jump_over_member();

  [[nodiscard]] Error error_at(ConfigNode node, std::string_view problem,
                               ErrorCode code = ErrorCode::kInvalidArgument) const {
    return Error{code, cat(format_path(node), " at offset ", cursor_.offset(), ": ", problem)};
  }
  [[nodiscard]] Error wrong_type(ConfigNode node, JsonKind found) const {
    return error_at(node, cat("expected ", format_node_type(spec_of(node).type), ", found ",
                              format_json_kind(found)));
  }

  JsonCursor& cursor_;
  OciConfig config_;
  std::vector<Frame> frames_;
  std::bitset<kConfigNodes> seen_;
  ConfigNode member_ = kOther;  // member whose value comes next
  std::size_t key_end_ = 0;     // offset after that member's name
  ConfigNode hook_list_ = kOther;
  bool first_arg_ = false;
  HugepageLimit hugepage_;
};

/// The node of the value that starts now.
ConfigNode ConfigReader::enter() {
  if (frames_.empty()) return kRoot;
  Frame& frame = frames_.back();
  first_arg_ = frame.empty;
  frame.empty = false;
  if (!frame.array) return member_;
  return frame.node == kOther ? kOther : element_of(frame.node);
}

Status ConfigReader::scalar(JsonScalar& value) {
  const ConfigNode node = enter();
  if (node == kOther) return {};
  const bool null = value.kind == JsonKind::kNull;
  const bool map_value = node == kAnnotation || node == kUnifiedValue;
  if (null ? node == kRoot || map_value : !fits(spec_of(node).type, value))
    return fail(wrong_type(node, value.kind));
  note_scalar_place(node, null);
  if (null) return {};
  if (value.kind == JsonKind::kString) return set_text(node, std::move(*value.text));
  set_integer(node, value.integer);
  return {};
}

void ConfigReader::note_scalar_place(ConfigNode node, bool null) {
  if (frames_.empty() || frames_.back().array) return;
  const std::string_view text = cursor_.text();
  const std::size_t colon = text.find_first_not_of(kWhiteSpace, key_end_);
  const std::size_t begin = text.find_first_not_of(kWhiteSpace, colon + 1);
  // The lexer reads one byte past a number, but not past other values.
  const bool number = kNumberBytes.contains(text[begin]);
  const std::size_t end = number
                              ? std::min(text.find_first_not_of(kNumberBytes, begin), text.size())
                              : cursor_.offset();
  config_.places_.at(index_of(node)) = {
      .value = ByteRange{begin, end}, .null = null, .empty = true};
}

Status ConfigReader::set_text(ConfigNode node, std::string text) {
  if (node == kAnnotation) return set_annotation(std::move(text));
  if (node == kCgroupsPath) return set_cgroups_path(std::move(text));
  if (node == kUnifiedValue) {
    config_.facts.resources.unified.emplace(frames_.back().key, std::move(text));
    return {};
  }
  if (node == kHugepageSize) {
    hugepage_.size = std::move(text);
    return {};
  }
  // Only args[0] names a program; later arguments may be anything.
  if ((node == kHookPath || (node == kHookArg && first_arg_)) && is_podqos_hook(text)) note_hook();
  return {};
}

void ConfigReader::set_integer(ConfigNode node, std::int64_t value) {
  if (node == kOomScoreAdj) config_.facts.oom_score_adj = value;
  if (node == kHugepageBytes) hugepage_.limit = Bytes{value};
  // 0 means unset, as in opencontainers/cgroups.
  const auto* const row = std::ranges::find(kResourceFields, node, &ResourceField::node);
  if (row != kResourceFields.end() && value != 0) config_.facts.resources.*(row->field) = value;
}

Status ConfigReader::set_annotation(std::string text) {
  const std::string& name = frames_.back().key;
  if (text.size() > kMaxAnnotationSize) {
    return fail(error_at(kAnnotation,
                         cat("annotation \"", printable(name), "\" has ", text.size(),
                             " bytes, at most ", kMaxAnnotationSize, " are read"),
                         ErrorCode::kTooLarge));
  }
  if (config_.facts.annotations.size() == kMaxKnownAnnotations) {
    return fail(error_at(kAnnotation,
                         cat("more than ", kMaxKnownAnnotations, " annotations that podqos reads"),
                         ErrorCode::kTooLarge));
  }
  config_.facts.annotations.emplace(name, std::move(text));
  return {};
}

Status ConfigReader::set_cgroups_path(std::string text) {
  if (std::ranges::any_of(text, is_control))
    return fail(error_at(kCgroupsPath, "path contains control bytes"));
  if (text.size() > kMaxCgroupsPathSize) {
    return fail(error_at(kCgroupsPath, "path is too long", ErrorCode::kTooLarge));
  }
  if (!text.empty()) config_.facts.cgroups_path = std::move(text);  // "": unset in Go
  return {};
}

void ConfigReader::note_hook() {
  (hook_list_ == kPoststop ? config_.has_poststop_hook : config_.has_create_hook) = true;
}

void ConfigReader::forget_members(ConfigNode node) {
  for (std::size_t i = 0; i < kConfigNodes; ++i) {
    if (spec_of(static_cast<ConfigNode>(i)).parent == node) seen_.reset(i);
  }
}

Status ConfigReader::begin(JsonKind kind) {
  const ConfigNode node = enter();
  if (node != kOther) {
    const NodeType wanted = spec_of(node).type;
    if (wanted != (kind == JsonKind::kArray ? NodeType::kArray : NodeType::kObject))
      return fail(wrong_type(node, kind));
    if (node == kHook) hook_list_ = frames_.back().node;
    if (node == kHugepageLimit) hugepage_ = {};
    // Each element of a list has these members once.
    if (node == kHook || node == kHugepageLimit) forget_members(node);
  }
  frames_.push_back({.node = node,
                     .array = kind == JsonKind::kArray,
                     .empty = true,
                     .begin = cursor_.offset() - 1,
                     .key = {}});
  return {};
}

Status ConfigReader::end() {
  const Frame frame = std::move(frames_.back());
  frames_.pop_back();
  if (frame.node == kOther) return {};
  config_.places_.at(index_of(frame.node)) = {
      .value = ByteRange{frame.begin, cursor_.offset()}, .null = false, .empty = frame.empty};
  if (frame.node == kHugepageLimit && !hugepage_.size.empty()) {
    config_.facts.resources.hugepages.insert_or_assign(std::move(hugepage_.size), hugepage_.limit);
  }
  return {};
}

Status ConfigReader::key(std::string& name) {
  Frame& frame = frames_.back();
  key_end_ = cursor_.offset();
  member_ = kOther;
  if (frame.node == kOther) return {};
  const bool map = frame.node == kAnnotations || frame.node == kUnified;
  Status status = map ? map_key(frame, name) : known_key(frame, name);
  if (status && member_ == kOther) jump_over_member();
  return status;
}

/// Most of a config is unknown to podqos (mounts, seccomp, capabilities …), and the lexer needs a
/// hundred instructions per byte. What is not plain JSON is left to the lexer, so that it alone
/// decides what is malformed.
void ConfigReader::jump_over_member() {
  const std::size_t levels = kMaxJsonDepth - frames_.size();
  if (const auto end = end_of_plain_member(cursor_.text(), key_end_, levels))
    cursor_.jump_over_value(*end);
}

Status ConfigReader::known_key(Frame& frame, std::string& name) {
  member_ = find_member(frame.node, name);
  if (member_ != kOther) {
    if (seen_.test(index_of(member_))) return fail(error_at(member_, "member is repeated"));
    seen_.set(index_of(member_));
    return {};
  }
  const ConfigNode taken_for = find_folded_member(frame.node, name);
  if (taken_for == kOther) return {};
  return fail(error_at(
      taken_for, cat("member is spelled \"", printable(name), "\", which some parsers accept")));
}

Status ConfigReader::map_key(Frame& frame, std::string& name) {
  const bool annotation = frame.node == kAnnotations;
  if (annotation && !is_known_annotation(name)) return {};
  member_ = annotation ? kAnnotation : kUnifiedValue;
  const bool repeated = annotation ? config_.facts.annotations.contains(name)
                                   : config_.facts.resources.unified.contains(name);
  if (repeated) return fail(error_at(frame.node, cat("\"", printable(name), "\" is repeated")));
  frame.key = std::move(name);
  return {};
}

Result<OciConfig> OciConfig::parse(std::string_view text) {
  if (text.size() > kMaxConfigSize) {
    return fail(ErrorCode::kTooLarge, cat("config.json has ", text.size(), " bytes, at most ",
                                          kMaxConfigSize, " are read"));
  }
  JsonCursor cursor = cursor_over(text);
  ConfigReader reader{cursor};
  if (Status status = read_json(cursor, reader); !status) return fail(std::move(status).error());
  return reader.release();
}

}  // namespace podqos::codec
