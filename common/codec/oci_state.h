#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/pods/request.h"

namespace podqos::codec {

/// Bound of the state in bytes.
constexpr std::size_t kMaxStateSize = std::size_t{1} << 20U;

/// The OCI state that a runtime passes to a hook on stdin (OCI runtime-spec, runtime.md "State").
/// `status` is not read, since runtimes disagree on it.
struct OciState {
  /// 1 to 1024 bytes of printable ASCII without space.
  std::string id;
  /// nullopt if absent or 0, as in poststop.
  std::optional<Pid> pid;
  std::string bundle;             ///< "" if absent
  core::Annotations annotations;  ///< known keys only, see is_known_annotation()
};

/// Parses a state.
/// @return kInvalidArgument for malformed JSON, or an id that is missing, empty, longer than 1024
/// bytes or not printable ASCII; kTooLarge beyond kMaxStateSize.
[[nodiscard]] Result<OciState> parse_oci_state(std::string_view text);

}  // namespace podqos::codec
