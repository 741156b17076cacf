#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/core/settings.h"

namespace podqos::app {

/// Paths of the configuration, used unless --config names a file.
struct ConfigurationPaths {
  std::string file = "/etc/podqos/podqos.json";
  /// Its *.json in name order, except hidden files.
  std::string directory = "/etc/podqos/conf.d";
};

/// The effective settings: built-in defaults, overridden by the main file, overridden by conf.d.
///
/// Every file is optional and opened at most once, because the hook runs this on each container
/// start.
/// @param file  --config FILE: only this file is read, and it must exist.
/// @return the error names the file and the field. kPermission if a file or conf.d is owned by a
///         user other than root or the caller, or is writable by group or others; kConflict if it
///         is not a regular file. In a user namespace a file of the host's root counts as root's.
///         The configuration decides what runs as root.
[[nodiscard]] Result<core::Settings> load_settings(const std::optional<std::string>& file,
                                                   const ConfigurationPaths& paths = {});

/// What the configuration is, also where load_settings() rejects it.
struct ConfigurationReport {
  core::Settings settings;           ///< with all files and fields that can be used
  std::vector<std::string> files;    ///< in the order in which they are laid over each other
  std::vector<std::string> errors;   ///< all, each with file and field
  std::vector<std::string> ignored;  ///< of conf.d, not read although it looks like configuration
};
/// Reads all of the configuration that can be read. For people: programs that place containers use
/// load_settings().
/// @param file  as for load_settings()
[[nodiscard]] ConfigurationReport inspect_configuration(const std::optional<std::string>& file,
                                                        const ConfigurationPaths& paths = {});

/// The field `runtimes` of a configuration that load_settings() rejects: a mistake elsewhere must
/// not make the wrapper run another runtime than the configured one. Files are read in the same
/// order.
/// @return an error if a file cannot be read or trusted, or if the value cannot be recovered
///         (codec::salvage_runtimes) and no later file sets it.
[[nodiscard]] Result<std::vector<std::string>> salvage_runtimes(
    const std::optional<std::string>& file, const ConfigurationPaths& paths = {});

}  // namespace podqos::app
