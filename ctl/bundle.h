#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"

namespace podqos::ctl {

/// Annotations to write, as key and value, in the order of writing.
using AnnotationList = std::vector<std::pair<std::string, std::string>>;

/// Adds annotations to `directory`/config.json, and keeps all other bytes, owner and mode. Writes
/// nothing if all annotations are present.
/// @return kConflict if an annotation is present with a different value; kInvalidArgument for a
///         config.json that is not an OCI configuration; the errors of reading and replacing it.
[[nodiscard]] Status annotate_bundle(const std::string& directory,
                                     const AnnotationList& annotations);

/// The text of a config.json with the annotations added. Errors as for annotate_bundle().
[[nodiscard]] Result<std::string> annotate_config(std::string_view config,
                                                  const AnnotationList& annotations);

}  // namespace podqos::ctl
