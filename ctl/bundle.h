#pragma once

#include <string>
#include <string_view>

#include "common/base/error.h"
#include "ctl/json_text.h"

namespace podqos::ctl {

/// Adds annotations to `directory`/config.json, and keeps all other bytes, owner and mode. Writes
/// nothing if all annotations are present.
/// @return kConflict if an annotation is present with a different value; kInvalidArgument for a
///         config.json that is not an OCI configuration; the errors of reading and replacing it.
[[nodiscard]] Status annotate_bundle(const std::string& directory,
                                     const StringMembers& annotations);

/// The text of a config.json with the annotations added. Errors as for annotate_bundle().
[[nodiscard]] Result<std::string> annotate_config(std::string_view config,
                                                  const StringMembers& annotations);

}  // namespace podqos::ctl
