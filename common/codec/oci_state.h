#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/container_facts.h"

namespace podqos::codec {

constexpr std::size_t kMaxStateSize = std::size_t{1} << 20U;

/// The OCI state that a hook reads on stdin. `pid` absent or 0 is nullopt; status is not read
/// (runtimes disagree).
struct OciState {
  std::string id;
  std::optional<Pid> pid;
  std::string bundle;             ///< "" when absent
  core::Annotations annotations;  ///< known ones only
};

/// @return kInvalidArgument for malformed JSON, a missing, empty, overlong (1024) or unprintable
/// id; kTooLarge.
[[nodiscard]] Result<OciState> parse_oci_state(std::string_view text);

}  // namespace podqos::codec
