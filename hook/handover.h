#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/app/place.h"
#include "common/base/error.h"
#include "common/codec/oci_edit.h"
#include "common/core/settings.h"
#include "hook/edit_places.h"

namespace podqos::hook {

/// Maximum size of a serialized handover in bytes; a longer reply is rejected.
constexpr std::size_t kMaxHandover = std::size_t{256} << 10U;

/// What the sandboxed parser process reports to its parent: the change of config.json, nullopt if
/// there is nothing to do, or an error.
using Handover = Result<std::optional<app::ConfigChange>>;

/// Serializes a handover for the pipe between parser process and parent: host byte order, 64-bit
/// lengths in front of each text.
[[nodiscard]] std::string format_handover(const Handover& handover);
/// Parses the bytes of format_handover(). The bytes are untrusted: magic number, lengths, counts
/// and error codes are checked, and control characters in an error message become blanks.
/// @return kCorrupt for bytes that are not a handover or exceed kMaxHandover.
[[nodiscard]] Result<Handover> parse_handover(std::string_view bytes);

/// The roots below which the parser process may place a container: those of `cgroup_root`, and the
/// one in use, in which pods stay when cgroupRoot changes. To be read before that process starts,
/// since it can write the state.
[[nodiscard]] std::vector<std::string> allowed_roots(const core::Settings& settings);

/// Checks that a placement only contains what podqos may write into a config.json. A compromised
/// parser process must not be able to add a hook or move the container out of podqos's root.
/// @param placement  as received from the parser process
/// @param places     of the config.json that it changes
/// @param roots      allowed_roots(), below one of which a written cgroupsPath has to lie
/// @param hooks      podqos's own hook registration
/// @return kConflict for a splice that check_splices() rejects, and for a cgroupsPath that is not
///         below podqos's root or has a component that is not a plain cgroup name.
[[nodiscard]] Status check_placement(const app::ConfigChange& placement, const EditPlaces& places,
                                     const std::vector<std::string>& roots,
                                     const codec::HookRegistration& hooks);

}  // namespace podqos::hook
