#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/app/configuration.h"
#include "common/app/log.h"
#include "common/base/error.h"
#include "common/core/settings.h"

namespace podqos::nri {

/// The current settings of the plugin, and the log that they configure. References returned by
/// settings() and log() stay valid while the object lives; their contents change with reload() and
/// lay_over().
class Configuration {
 public:
  /// Loads the settings.
  /// @param file  the value of --config; nullopt: podqos.json and conf.d
  /// @return the errors of app::load_settings().
  static Result<Configuration> load(std::optional<std::string> file,
                                    app::ConfigurationPaths paths = {});

  [[nodiscard]] const core::Settings& settings() const { return settings_; }
  [[nodiscard]] app::Log& log() { return log_; }

  /// Reads the files again and reopens the log. After an error the old settings stay in effect.
  /// A changed nri.metrics is ignored with a warning: the sandbox allows no bind(2).
  /// @return the errors of app::load_settings(); kConflict: stateDir has changed, which requires a
  ///         restart, because it contains the lock of the only plugin.
  [[nodiscard]] Status reload() { return replace(text_); }

  /// Merges the configuration text that the runtime passes to a plugin that it has started
  /// (ConfigureRequest.config) over the files. It stays merged after reload(). A text that is
  /// already merged has no effect, so that a new connection reads no file.
  /// @param text  in the form of podqos.json; "": none
  /// @return as reload(); after an error the old settings stay in effect.
  [[nodiscard]] Status lay_over(std::string text);

 private:
  Configuration(std::optional<std::string> file, app::ConfigurationPaths paths,
                core::Settings settings);
  /// Loads the files, merges `text` over them, and replaces settings and log.
  [[nodiscard]] Status replace(std::string_view text);

  std::optional<std::string> file_;
  app::ConfigurationPaths paths_;
  std::string text_;  ///< configuration text from the runtime
  core::Settings settings_;
  app::Log log_;
};

}  // namespace podqos::nri
