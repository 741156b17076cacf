#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/app/log.h"
#include "common/base/error.h"
#include "common/core/settings.h"
#include "common/sys/clock.h"
#include "nri/http_server.h"
#include "nri/plugin_configuration.h"
#include "nri/plugin_metrics.h"
#include "nri/service.h"

namespace podqos::nri {

/// The HTTP pages of podqos-nri: /metrics, /healthz and /readyz.
class Pages {
 public:
  /// All arguments outlive the object.
  Pages(Configuration& configuration, const Metrics& metrics,
        const sys::Clock& clock = sys::kSteadyClock)
      : configuration_(configuration), metrics_(metrics), clock_(clock) {}

  /// The page at `path`. /readyz is 503 with the obstacle unless `status` is synchronized or
  /// standby; an unknown path is 404.
  [[nodiscard]] HttpAnswer answer(std::string_view path, const ConnectionStatus& status);

 private:
  /// The page /metrics.
  [[nodiscard]] HttpAnswer metrics(const ConnectionStatus& status);
  /// The metrics of the node as text, at most one second old.
  [[nodiscard]] const std::string& node();

  Configuration& configuration_;
  const Metrics& metrics_;
  const sys::Clock& clock_;
  std::string node_;  ///< as last read
  std::optional<sys::Clock::TimePoint> node_read_;
  std::string last_failure_;  ///< the last logged reason for missing figures
};

}  // namespace podqos::nri
