#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace podqos::codec {

/// The members of an OCI config.json that podqos reads or edits. A parent stands before its
/// members.
enum class ConfigNode : std::uint8_t {
  kRoot,
  kProcess,
  kOomScoreAdj,
  kAnnotations,
  kAnnotation,
  kHooks,
  kPrestart,
  kCreateRuntime,
  kPoststop,
  kHook,
  kHookPath,
  kHookArgs,
  kHookArg,
  kLinux,
  kCgroupsPath,
  kResources,
  kCpu,
  kCpuShares,
  kCpuQuota,
  kCpuPeriod,
  kMemory,
  kMemoryLimit,
  kMemoryReservation,
  kMemorySwap,
  kPids,
  kPidsLimit,
  kHugepageLimits,
  kHugepageLimit,
  kHugepageSize,
  kHugepageBytes,
  kUnified,
  kUnifiedValue,
  kOther,  ///< whatever podqos does not look at
};
constexpr std::size_t kConfigNodes = static_cast<std::size_t>(ConfigNode::kOther);

[[nodiscard]] constexpr std::size_t index_of(ConfigNode node) {
  return static_cast<std::size_t>(node);
}

enum class NodeType : std::uint8_t { kObject, kArray, kSigned, kUnsigned, kString };

/// One row of the schema.
struct NodeSpec {
  ConfigNode node = ConfigNode::kOther;
  ConfigNode parent = ConfigNode::kOther;
  std::string_view name;  ///< of the member; "" for elements and the values of maps
  NodeType type = NodeType::kObject;
};

/// @param node  not kOther
[[nodiscard]] const NodeSpec& spec_of(ConfigNode node);

/// The member `name` of `parent`; kOther when podqos does not know it.
[[nodiscard]] ConfigNode find_member(ConfigNode parent, std::string_view name);

/// The member of `parent` that `name` is taken for by parsers which ignore letter case.
/// @note Go's encoding/json folds as Unicode does: U+017F is an s, U+212A a k.
[[nodiscard]] ConfigNode find_folded_member(ConfigNode parent, std::string_view name);

/// What an element of the array `node` is.
[[nodiscard]] ConfigNode element_of(ConfigNode node);

/// "linux.resources.cpu.shares"; "config.json" for the root.
[[nodiscard]] std::string format_path(ConfigNode node);

}  // namespace podqos::codec
