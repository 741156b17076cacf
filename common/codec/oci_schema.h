#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace podqos::codec {

/// The member of config.json's root in which podqos notes what it has filled in: an array of
/// `{"at":"/linux/resources/cpu/shares","is":102}`, with `"was":0` for the text of a value that was
/// replaced. Runtimes ignore members that they do not know (runtime-spec config.md,
/// "Extensibility"), and no author of a pod can write it.
constexpr std::string_view kEditRecord = "podqos.io/edits";

/// The members of an OCI config.json that podqos reads or edits. Parents come before their members.
/// @note OCI runtime-spec, config.md and config-linux.md.
enum class ConfigNode : std::uint8_t {
  kRoot,
  kEdits,  ///< kEditRecord
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
  kCpuRealtimeRuntime,
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
  kOther,  ///< members that podqos ignores
};
/// Number of nodes in the schema; kOther is not one of them.
constexpr std::size_t kConfigNodes = static_cast<std::size_t>(ConfigNode::kOther);

/// The node's row in the schema.
[[nodiscard]] constexpr std::size_t index_of(ConfigNode node) {
  return static_cast<std::size_t>(node);
}

/// Types that the runtime-spec gives these members.
enum class NodeType : std::uint8_t { kObject, kArray, kSigned, kUnsigned, kString };

/// A row of the schema.
struct NodeSpec {
  ConfigNode node = ConfigNode::kOther;
  ConfigNode parent = ConfigNode::kOther;
  std::string_view name;  ///< name of the member; "" for array elements and map values
  NodeType type = NodeType::kObject;
};

/// The row of a node.
/// @param node  not kOther
[[nodiscard]] const NodeSpec& spec_of(ConfigNode node);

/// How a runtime compares the names of members.
enum class MemberNames : std::uint8_t {
  kAnyCase,  ///< runc and others in Go: "CPU" is read as "cpu"
  kExact,    ///< crun and youki: "CPU" is ignored
};

/// Whether `name` is taken for a member that is called `known`, in ASCII.
/// @note Go's encoding/json uses Unicode folding: U+017F equals s, U+212A equals k.
[[nodiscard]] bool is_member_name(std::string_view name, std::string_view known, MemberNames names);

/// The member that `name` is taken for in `parent`; kOther if podqos ignores it.
[[nodiscard]] ConfigNode find_member(ConfigNode parent, std::string_view name, MemberNames names);

/// Whether `name` is an object or array of the schema in an object that is called `parent`, in
/// whatever case; see JsonBounds::is_read.
[[nodiscard]] bool is_container_name(std::string_view parent, std::string_view name);

/// The node of the elements of array `node`.
[[nodiscard]] ConfigNode element_of(ConfigNode node);

/// Path of a node for messages: "linux.resources.cpu.shares"; "config.json" for the root.
[[nodiscard]] std::string format_path(ConfigNode node);

}  // namespace podqos::codec
