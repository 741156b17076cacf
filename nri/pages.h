#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/app/log.h"
#include "common/base/error.h"
#include "common/core/settings.h"
#include "common/store/node_snapshot.h"
#include "common/sys/clock.h"
#include "nri/configuration.h"
#include "nri/exposition.h"
#include "nri/http_server.h"
#include "nri/metrics.h"
#include "nri/service.h"

namespace podqos::nri {

/// What podqos-nri shows: /metrics, /healthz and /readyz.
class Pages {
 public:
  /// All outlive the object.
  Pages(Configuration& configuration, const Metrics& metrics,
        const sys::Clock& clock = sys::kSteadyClock);

  [[nodiscard]] HttpAnswer answer(std::string_view path, const ConnectionStatus& status);

 private:
  [[nodiscard]] HttpAnswer metrics(const ConnectionStatus& status);
  [[nodiscard]] const std::vector<MetricFamily>& node();

  Configuration& configuration_;
  const Metrics& metrics_;
  const sys::Clock& clock_;
  store::SnapshotReader snapshot_reader_;
  std::vector<MetricFamily> node_;  ///< as it was last read
  std::optional<sys::Clock::TimePoint> node_read_;
  std::string last_failure_;  ///< the reason that was logged last for having no figures
};

}  // namespace podqos::nri
