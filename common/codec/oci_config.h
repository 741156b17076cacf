#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "common/base/error.h"
#include "common/codec/oci_schema.h"
#include "common/core/container_facts.h"

namespace podqos::codec {

constexpr std::size_t kMaxConfigSize = std::size_t{8} << 20U;
constexpr std::size_t kMaxCgroupsPathSize = 4096;

/// A half-open byte range of the input.
struct ByteRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

/// Where a member's value stands in the input.
struct NodePlace {
  std::optional<ByteRange> value;  ///< nullopt: the member is not there
  bool null = false;               ///< the value is the literal null
  bool empty = true;               ///< an object or array without members
};

/// A parsed config.json: the facts, and where in the bytes the values stand that podqos may change.
class OciConfig {
 public:
  /// One pass over the text; nothing but the facts and positions is kept.
  ///
  /// @return kTooLarge (kMaxConfigSize bytes, kMaxJsonDepth levels, kMaxKnownAnnotations,
  /// kMaxAnnotationSize), or
  ///         kInvalidArgument with path and offset for what is no JSON object, has a wrong type in
  ///         a member that podqos reads, repeats a member on an edited path (parsers differ in
  ///         which one wins), spells one with other letter case (Go's parser would take it), or has
  ///         control bytes in cgroupsPath.
  static Result<OciConfig> parse(std::string_view text);

  core::ContainerFacts facts;  ///< id and bundle are the caller's to fill in
  /// Is a podqos hook registered already in this stage's list? (path or args[0] with basename
  /// podqos-hook)
  bool has_create_hook = false;  ///< createRuntime or prestart
  bool has_poststop_hook = false;

  /// For the edit (oci_edit.h). Elements of arrays and values of maps have no place.
  [[nodiscard]] const NodePlace& place(ConfigNode node) const { return places_.at(index_of(node)); }

 private:
  friend class ConfigReader;
  std::array<NodePlace, kConfigNodes> places_;
};

}  // namespace podqos::codec
