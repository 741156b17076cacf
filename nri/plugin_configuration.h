#pragma once

#include <optional>
#include <string>
#include <utility>

#include "common/app/configuration.h"
#include "common/app/log.h"
#include "common/base/error.h"
#include "common/core/settings.h"

namespace podqos::nri {

/// The current settings of the plugin, and the log that they configure. References returned by
/// settings() and log() stay valid while the object lives; their contents change with reload()
/// and follow().
class Configuration {
 public:
  /// Loads the settings that are in force, and logs the errors of the files.
  /// @param file  the value of --config; nullopt: podqos.json and conf.d
  /// @return these errors if no settings are known that were valid
  static Result<Configuration> load(std::optional<std::string> file,
                                    app::ConfigurationPaths paths = {});

  [[nodiscard]] const core::Settings& settings() const { return settings_; }
  [[nodiscard]] app::Log& log() { return log_; }

  /// Reads the files again, reopens the log, and says there whether the new settings are in effect.
  /// A changed nri.metrics is ignored with a warning: the sandbox allows no bind(2).
  void reload();
  /// The same if a file has changed: this plugin must not write by other rules than the programs
  /// that read the files at each event.
  void follow();

 private:
  Configuration(std::optional<std::string> file, app::ConfigurationPaths paths)
      : file_(std::move(file)), paths_(std::move(paths)) {}
  /// Loads the settings in force, and replaces settings and log.
  /// @return the errors of the files, where the last valid settings are in force, else "".
  ///         kInvalidArgument: no settings are known that were valid; kConflict: stateDir has
  ///         changed, which requires a restart, because it contains the lock of the only plugin.
  ///         Then the old settings stay in effect.
  [[nodiscard]] Result<std::string> replace();

  std::optional<std::string> file_;
  app::ConfigurationPaths paths_;
  std::string stamp_;  ///< of the files before they were read
  core::Settings settings_;
  app::Log log_{"podqos-nri", settings_};
};

}  // namespace podqos::nri
