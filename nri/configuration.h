#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/app/configuration.h"
#include "common/app/log.h"
#include "common/base/error.h"
#include "common/core/settings.h"

namespace podqos::nri {

/// The current settings of the plugin, and the log that they configure. References returned by
/// settings() and log() stay valid while the object lives; their contents change with reload(),
/// follow() and lay_over().
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

  /// Merges the configuration text that the runtime passes to a plugin that it has started
  /// (ConfigureRequest.config) over the files. It stays merged after reload(). A text that is
  /// already merged has no effect, so that a new connection reads no file.
  /// @param text  in the form of podqos.json; "": none
  /// @return the errors of the files and of the text; kConflict: stateDir has changed, which
  ///         requires a restart, because it contains the lock of the only plugin. After an error
  ///         the old settings stay in effect.
  [[nodiscard]] Status lay_over(std::string text);

 private:
  Configuration(std::optional<std::string> file, app::ConfigurationPaths paths)
      : file_(std::move(file)), paths_(std::move(paths)) {}
  /// Loads the settings in force, merges `text` over them, and replaces settings and log.
  /// @return the errors of the files, where the last valid settings are in force; else ""
  [[nodiscard]] Result<std::string> replace(std::string_view text);

  std::optional<std::string> file_;
  app::ConfigurationPaths paths_;
  std::string text_;   ///< configuration text from the runtime
  std::string stamp_;  ///< of the files before they were read
  core::Settings settings_;
  app::Log log_{"podqos-nri", settings_};
};

}  // namespace podqos::nri
