#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/core/settings.h"

namespace podqos::app {

/// Where the configuration lies when no file is named.
struct ConfigurationPaths {
  std::string file = "/etc/podqos/podqos.json";
  std::string directory =
      "/etc/podqos/conf.d";  ///< its *.json, in name order, hidden ones left out
};

/// The effective settings: the built-in defaults, the main file over them, conf.d over that.
///
/// Every file is optional, and opened at most once: the hook calls this on each container start.
/// @param file  --config FILE: only this file counts then, and it must exist.
/// @return the error names the file and the field. kPermission for a file that somebody other than
///         root or the caller owns or can write to, kConflict for one that is not regular: the
///         configuration decides what runs as root.
[[nodiscard]] Result<core::Settings> load_settings(const std::optional<std::string>& file,
                                                   const ConfigurationPaths& paths = {});

/// The field `runtimes` of a configuration that load_settings refuses: another runtime than the
/// configured one must not be run because of a mistake elsewhere. Same order of files.
/// @return an error where a file cannot be read or believed, and where it cannot be decided what
///         the field was meant to be (codec::salvage_runtimes) and no later file names it.
[[nodiscard]] Result<std::vector<std::string>> salvage_runtimes(
    const std::optional<std::string>& file, const ConfigurationPaths& paths = {});

}  // namespace podqos::app
