#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"

namespace podqos::ctl {

using AnnotationList = std::vector<std::pair<std::string, std::string>>;

/// Adds annotations to `directory`/config.json; every other byte, owner and mode stay. Nothing is
/// written if all are there already.
/// @return kConflict if one is there with another value; kInvalidArgument for a config.json that is
///         no OCI configuration.
[[nodiscard]] Status annotate_bundle(const std::string& directory,
                                     const AnnotationList& annotations);

/// The same on the text alone.
[[nodiscard]] Result<std::string> annotate_config(std::string_view config,
                                                  const AnnotationList& annotations);

}  // namespace podqos::ctl
