#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/units.h"
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

/// Whether podqos reads anything in the member `name`, an object or list, of an object that is
/// called `parent`: JsonBounds::is_read.
[[nodiscard]] bool is_container_name(std::string_view parent, std::string_view name);

/// Makes one of the members that an object has several times, in any case, as Go's encoding/json
/// does, which decodes each into what it has of the former ones: the members of objects come
/// together, of other values the last counts. The node has the bytes of the last one, so that what
/// is written there is what Go ends up with. Members stay repeated where Go is less clear: lists,
/// null behind a value (some fields keep the value), and the keys of maps.
/// @param object  the root of a config.json, or an object in it
void merge_members(JsonNode& object);

/// A parsed config.json (OCI runtime-spec, config.md): the facts that podqos uses, and the values
/// that it may change.
struct OciConfig {
  /// Parses the text, which must outlive the result.
  /// @param names  as the runtime compares them: those in Go, runc too, without regard to case
  /// @return kTooLarge (kMaxConfigSize bytes, kMaxJsonDepth levels, kMaxJsonValues values
  /// that are read, kMaxKnownAnnotations, kMaxAnnotationSize), or kInvalidArgument with path and
  /// position if the text is not a JSON object, a member that podqos reads has the wrong type or is
  /// repeated (parsers differ in which one they use; but see merge_members()), or cgroupsPath has
  /// control bytes.
  static Result<OciConfig> parse(std::string_view text, MemberNames names = MemberNames::kAnyCase);

  core::ContainerFacts facts;  ///< id and bundle are filled in by the caller
  /// Whether a podqos hook is already registered for the stage: `path` or args[0] has the basename
  /// podqos-hook.
  bool has_create_hook = false;  ///< in createRuntime or prestart
  /// The same for poststop.
  bool has_poststop_hook = false;
  std::string_view text;  ///< what was parsed
  JsonTree tree;          ///< after merge_members() if names are kAnyCase
  MemberNames names = MemberNames::kAnyCase;
};

/// Parses what a runtime's `update --resources` reads: linux.resources alone.
/// @return the errors of OciConfig::parse()
[[nodiscard]] Result<core::EngineResources> parse_resources(std::string_view text,
                                                            MemberNames names);

/// Bound of the state in bytes.
constexpr std::size_t kMaxStateSize = std::size_t{1} << 20U;

/// The OCI state that a runtime passes to a hook on stdin (OCI runtime-spec, runtime.md "State").
/// `status` is not read, since runtimes disagree on it.
struct OciState {
  /// Id, of 1 to 1024 bytes of printable ASCII without space, bundle as it is told, and
  /// annotations.
  core::ContainerFacts facts;
  /// nullopt if absent or 0, as in poststop.
  std::optional<Pid> pid;
};

/// Parses a state.
/// @return kInvalidArgument for malformed JSON, or an id that is missing, empty, longer than 1024
/// bytes or not printable ASCII; kTooLarge beyond kMaxStateSize.
[[nodiscard]] Result<OciState> parse_oci_state(std::string_view text);

}  // namespace podqos::codec
