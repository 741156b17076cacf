#pragma once

#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "common/codec/oci_edit.h"

namespace podqos::hook {

/// Are these splices such as podqos makes, and each in its place?
///
/// The process that planned them has parsed input from strangers. If it was broken into, it must
/// not be able to add a foreign hook, rename a member or remove one. So their place is looked up
/// again by a scan that only follows braces, strings and member names: a splice may replace a
/// scalar value of a member that podqos edits, or insert members and elements where they belong,
/// and what it puts there must be an integer, `cgroups_path`, a page size, or exactly podqos's own
/// hook.
/// @return kConflict, with the text, for everything else.
[[nodiscard]] Status check_splices(const std::vector<codec::Splice>& splices,
                                   std::string_view config, std::string_view cgroups_path,
                                   const codec::HookRegistration& hooks);

}  // namespace podqos::hook
