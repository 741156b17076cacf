#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/app/log.h"
#include "common/core/settings.h"

namespace podqos::app {

/// Paths of the configuration, used unless --config names a file.
struct ConfigurationPaths {
  std::string file = "/etc/podqos/podqos.json";
  /// Its *.json in name order, except hidden files.
  std::string directory = "/etc/podqos/conf.d";
};

/// Which settings are in force.
enum class SettingsSource : std::uint8_t {
  kFiles,      ///< those of the files, which are valid
  kLastValid,  ///< those of the last transaction, as the files have an error
  /// No transaction since the boot: the fields that are right, for people. Nothing is managed by
  /// them, since state directory and cgroup root may be others.
  kReadable,
};

/// The configuration, also where it has errors.
struct ConfigurationReport {
  core::Settings settings;  ///< without `runtimes` where these are in doubt
  SettingsSource source = SettingsSource::kFiles;
  std::vector<std::string> files;    ///< in the order in which they are laid over each other
  std::vector<std::string> errors;   ///< all, each with file and field
  std::vector<std::string> ignored;  ///< of conf.d, not read although it looks like configuration
};
/// Reads the configuration: built-in defaults, overridden by the main file, overridden by conf.d.
/// An error in it changes nothing that is in force: the settings of the last transaction, which
/// node.json has, stay so until it is corrected.
///
/// Every file is optional and opened at most once, because the hook runs this on each container
/// start. A file or conf.d that is owned by a user other than root or the caller, or is writable by
/// group or others, is an error unless it is mounted read-only, since the configuration decides
/// what runs as root. In a user namespace a file of the host's root counts as root's.
/// @param file  --config FILE: only this file is read, and it must exist
[[nodiscard]] ConfigurationReport inspect_configuration(const std::optional<std::string>& file,
                                                        const ConfigurationPaths& paths = {});

/// Tells versions of the configuration's files apart: the inode and time of change of each.
/// @param file  as for inspect_configuration()
[[nodiscard]] std::string stamp_configuration(const std::optional<std::string>& file,
                                              const ConfigurationPaths& paths = {});

/// All errors of a configuration, which settings are in force, and the remedy: one line.
[[nodiscard]] std::string describe_errors(const ConfigurationReport& report);
/// Logs describe_errors(), if there are any.
void log_errors(const ConfigurationReport& report, Log& log);
/// Which settings are in force because of an error; "" without one.
[[nodiscard]] std::string_view describe_source(SettingsSource source);

}  // namespace podqos::app
