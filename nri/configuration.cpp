#include "nri/configuration.h"

#include <utility>

#include "common/base/text.h"
#include "common/codec/settings_json.h"

namespace podqos::nri {

namespace {

/// The program's name in log lines.
constexpr const char* kProgram = "podqos-nri";

/// An address for a message, in the form of the configuration.
std::string shown(const std::optional<core::MetricsAddress>& address) {
  return address ? core::format_metrics_address(*address) : "null";
}

}  // namespace

Configuration::Configuration(std::optional<std::string> file, app::ConfigurationPaths paths,
                             core::Settings settings)
    : file_(std::move(file)),
      paths_(std::move(paths)),
      settings_(std::move(settings)),
      log_(kProgram, settings_) {}

Result<Configuration> Configuration::load(std::optional<std::string> file,
                                          app::ConfigurationPaths paths) {
  PODQOS_ASSIGN(auto settings, app::load_settings(file, paths));
  return Configuration{std::move(file), std::move(paths), std::move(settings)};
}

Status Configuration::lay_over(std::string text) {
  if (text == text_) return {};
  PODQOS_TRY(replace(text));
  text_ = std::move(text);
  return {};
}

Status Configuration::replace(std::string_view text) {
  PODQOS_ASSIGN(auto settings, app::load_settings(file_, paths_));
  if (!text.empty()) {
    auto merged = codec::merge_settings(std::move(settings), text);
    if (!merged)
      return fail(std::move(merged).error().with_context("configuration from the runtime"));
    settings = std::move(*merged);
  }
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
  return {};
}

}  // namespace podqos::nri
