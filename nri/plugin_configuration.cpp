#include "nri/plugin_configuration.h"

#include <utility>

#include "common/base/text.h"
#include "common/codec/metrics_address.h"

namespace podqos::nri {

namespace {

/// The program's name in log lines.
constexpr const char* kProgram = "podqos-nri";

/// An address for a message, in the form of the configuration.
std::string shown(const std::optional<core::MetricsAddress>& address) {
  return address ? codec::format_metrics_address(*address) : "null";
}

}  // namespace

Result<Configuration> Configuration::load(std::optional<std::string> file,
                                          app::ConfigurationPaths paths) {
  Configuration loaded{std::move(file), std::move(paths)};
  loaded.stamp_ = app::stamp_configuration(loaded.file_, loaded.paths_);
  app::ConfigurationReport report = app::inspect_configuration(loaded.file_, loaded.paths_);
  if (report.source == app::SettingsSource::kReadable)
    return fail(ErrorCode::kInvalidArgument, app::describe_errors(report));
  loaded.settings_ = std::move(report.settings);
  loaded.log_ = app::Log{kProgram, loaded.settings_};
  app::log_errors(report, loaded.log_);
  return loaded;
}

void Configuration::reload() {
  const auto done = replace();
  if (done && done->empty()) return log_.info("configuration reloaded");
  log_.error(cat("configuration not reloaded, keeping the previous one: ",
                 done ? *done : done.error().message));
}

void Configuration::follow() {
  if (app::stamp_configuration(file_, paths_) != stamp_) reload();
}

Result<std::string> Configuration::replace() {
  stamp_ = app::stamp_configuration(file_, paths_);
  app::ConfigurationReport report = app::inspect_configuration(file_, paths_);
  core::Settings& settings = report.settings;
  // The plugin's own are the last valid ones, unless another program has used others since.
  if (report.source == app::SettingsSource::kReadable)
    return fail(ErrorCode::kInvalidArgument, app::describe_errors(report));
  if (settings.state_dir != settings_.state_dir) {
    return fail(ErrorCode::kConflict,
                cat("stateDir: cannot change from ", settings_.state_dir, " to ",
                    settings.state_dir, " while podqos-nri is running: restart it"));
  }
  const auto metrics = std::exchange(settings.metrics, settings_.metrics);
  settings_ = std::move(settings);
  log_ = app::Log{kProgram, settings_};
  if (metrics != settings_.metrics) {
    log_.warning(cat("nri.metrics: keeping ", shown(settings_.metrics), "; to use ", shown(metrics),
                     ", set it in podqos.json or conf.d and restart podqos-nri"));
  }
  return report.errors.empty() ? "" : app::describe_errors(report);
}

}  // namespace podqos::nri
