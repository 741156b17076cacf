#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "common/base/error.h"
#include "common/codec/oci_schema.h"
#include "common/core/request.h"

namespace podqos::codec {

/// Bounds of a config.json and of its linux.cgroupsPath, in bytes.
constexpr std::size_t kMaxConfigSize = std::size_t{8} << 20U;
constexpr std::size_t kMaxCgroupsPathSize = 4096;

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
class OciConfig {
 public:
  /// Parses the text; only facts and positions are kept.
  ///
  /// @return kTooLarge (kMaxConfigSize bytes, kMaxJsonDepth levels, kMaxJsonValues values
  /// that are read, kMaxKnownAnnotations, kMaxAnnotationSize), or kInvalidArgument with path and
  /// position if the text is not a JSON object, a member that podqos reads has the wrong type, a
  /// member on an edited path is repeated (parsers differ in which one they use), or cgroupsPath
  /// has control bytes.
  static Result<OciConfig> parse(std::string_view text, MemberNames names = MemberNames::kAnyCase);

  core::ContainerFacts facts;  ///< id and bundle are filled in by the caller
  /// Whether a podqos hook is already registered for the stage: `path` or args[0] has the basename
  /// podqos-hook.
  bool has_create_hook = false;  ///< in createRuntime or prestart
  /// The same for poststop.
  bool has_poststop_hook = false;

  /// Position of a member, for oci_edit.h. Of array elements, their members and map values, the
  /// last one's.
  [[nodiscard]] const NodePlace& place(ConfigNode node) const { return places_.at(index_of(node)); }

 private:
  friend class ConfigReader;
  std::array<NodePlace, kConfigNodes> places_;
};

}  // namespace podqos::codec
