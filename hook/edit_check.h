#pragma once

#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/codec/oci_edit.h"
#include "hook/edit_places.h"

namespace podqos::hook {

/// Checks that each splice is an edit that podqos makes, at a position where podqos makes it.
///
/// The parser process that planned the splices has parsed untrusted input. If it is compromised,
/// it must not be able to add a foreign hook, or to rename or remove a member. The positions are
/// therefore looked up again by a scan that only follows braces, strings and member names. A splice
/// may replace an unset scalar of a member that podqos edits (or cgroupsPath), or insert members
/// and elements into an object or array that podqos edits. The inserted text must consist of
/// integers, `cgroups_path`, page sizes such as "2MB", and the hook entries of `hooks`.
/// @param splices       as planned by the parser process, with offsets into config.json
/// @param places        of the config.json that the splices are to be applied to
/// @param cgroups_path  the only path that a splice may write as linux.cgroupsPath
/// @param hooks         the only hook that a splice may register
/// @return kConflict, with the text of the splice, for any other edit and for a config.json that
///         is not a JSON object.
[[nodiscard]] Status check_splices(const std::vector<codec::Splice>& splices,
                                   const EditPlaces& places, std::string_view cgroups_path,
                                   const codec::HookRegistration& hooks);

/// Checks that the record of the edits in an edited config.json takes back nothing but them: with
/// former_config() all that the engine has set, and nothing else, is set again.
/// @param places  of the config.json before the edit
/// @return kConflict if it is not so.
[[nodiscard]] Status check_record(std::string_view edited, const EditPlaces& places);

}  // namespace podqos::hook
