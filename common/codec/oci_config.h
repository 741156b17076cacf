#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "common/base/error.h"
#include "common/codec/json_tree.h"
#include "common/core/pods/request.h"

namespace podqos::codec {

/// Bounds of a config.json and of its linux.cgroupsPath, in bytes.
constexpr std::size_t kMaxConfigSize = std::size_t{8} << 20U;
constexpr std::size_t kMaxCgroupsPathSize = 4096;

/// The member of config.json's root in which podqos notes what it has filled in: an array of
/// `{"at":"/linux/resources/cpu/shares","is":102}`, with `"was":0` for the text of a value that was
/// replaced. Runtimes ignore members that they do not know (runtime-spec config.md,
/// "Extensibility"), and no author of a pod can write it.
constexpr std::string_view kEditRecord = "podqos.io/edits";

/// The members of a config.json that podqos edits, and those that contain them, as JSON pointers
/// (RFC 6901). Parents come before their members.
/// @note OCI runtime-spec, config.md and config-linux.md.
constexpr std::array<std::string_view, 19> kConfigMembers{
    "",
    "/process",
    "/process/oomScoreAdj",
    "/hooks",
    "/hooks/createRuntime",
    "/hooks/poststop",
    "/linux",
    "/linux/cgroupsPath",
    "/linux/resources",
    "/linux/resources/cpu",
    "/linux/resources/cpu/shares",
    "/linux/resources/cpu/quota",
    "/linux/resources/cpu/period",
    "/linux/resources/memory",
    "/linux/resources/memory/limit",
    "/linux/resources/pids",
    "/linux/resources/pids/limit",
    "/linux/resources/hugepageLimits",
    "/linux/resources/unified",
};
/// Whether podqos reads anything in the member `name`, an object or list, of an object that is
/// called `parent`: JsonBounds::is_read.
[[nodiscard]] bool is_container_name(std::string_view parent, std::string_view name);
/// The place of `pointer` among kConfigMembers, which have it.
[[nodiscard]] std::size_t index_of(std::string_view pointer);

/// A half-open byte range of the input.
struct ByteRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

/// Position of a member's value in the input.
struct NodePlace {
  std::optional<ByteRange> value;  ///< nullopt: the member is absent
  bool null = false;               ///< the value is the literal null
  bool empty = true;               ///< an object or array that has no members
};

/// A parsed config.json (OCI runtime-spec, config.md): the facts that podqos uses, and the
/// positions of the values that it may change.
struct OciConfig {
  /// Parses the text; only facts and positions are kept.
  /// @param names  as the runtime compares them: those in Go, runc too, without regard to case
  /// @return kTooLarge (kMaxConfigSize bytes, kMaxJsonDepth levels, kMaxJsonValues values
  /// that are read, kMaxKnownAnnotations, kMaxAnnotationSize), or kInvalidArgument with path and
  /// position if the text is not a JSON object, a member that podqos reads has the wrong type or is
  /// repeated (parsers differ in which one they use), or cgroupsPath has control bytes.
  static Result<OciConfig> parse(std::string_view text, MemberNames names = MemberNames::kAnyCase);

  core::ContainerFacts facts;  ///< id and bundle are filled in by the caller
  /// Whether a podqos hook is already registered for the stage: `path` or args[0] has the basename
  /// podqos-hook.
  bool has_create_hook = false;  ///< in createRuntime or prestart
  /// The same for poststop.
  bool has_poststop_hook = false;
  std::array<NodePlace, kConfigMembers.size()> places;  ///< of kConfigMembers
  NodePlace edits;                                      ///< of kEditRecord

  [[nodiscard]] const NodePlace& place(std::string_view pointer) const {
    return places.at(index_of(pointer));
  }
};

}  // namespace podqos::codec
