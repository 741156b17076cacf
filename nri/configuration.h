#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/app/configuration.h"
#include "common/app/log.h"
#include "common/base/error.h"
#include "common/core/settings.h"

namespace podqos::nri {

/// The settings in force while the plugin runs, and the log that they ask for. settings() and log()
/// stay where they are while the object lives; what they hold changes with reload() and lay_over().
class Configuration {
 public:
  /// @param file  as app::load_settings() takes it, with its errors.
  static Result<Configuration> load(std::optional<std::string> file,
                                    app::ConfigurationPaths paths = {});

  [[nodiscard]] const core::Settings& settings() const { return settings_; }
  [[nodiscard]] app::Log& log() { return log_; }

  /// Reads the files again, and opens the log anew. After an error everything is as it was.
  /// What is nri.metrics at the start stays, with a warning: a plugin that runs may bind nothing.
  /// @return app::load_settings()'s errors; kConflict: another stateDir, which only a restart can
  /// change, since it holds what says that there is one plugin.
  [[nodiscard]] Status reload();

  /// Lays the text over the files that the runtime hands to a plugin that it has started: the
  /// plugin's own file in the runtime's directory, in the form of podqos.json; empty for none. It
  /// stays on top at reload(). What is on top already changes nothing, so that a new connection
  /// reads no file. Errors as there, without effect.
  [[nodiscard]] Status lay_over(std::string text);

 private:
  Configuration(std::optional<std::string> file, app::ConfigurationPaths paths,
                core::Settings settings);
  [[nodiscard]] Status replace(std::string_view text);

  std::optional<std::string> file_;
  app::ConfigurationPaths paths_;
  std::string text_;  ///< of the runtime
  core::Settings settings_;
  app::Log log_;
};

}  // namespace podqos::nri
