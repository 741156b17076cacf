#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/error.h"
#include "nri/exposition.h"
#include "nri/handler.h"

namespace podqos::nri {

/// Counters and timings of podqos-nri. All series exist from the start with 0, because rate()
/// misses the first value of a new series.
class Metrics {
 public:
  /// Counts a request of the runtime and the time it took.
  void handled(Request request, std::chrono::steady_clock::duration time);
  /// Counts a failure, whether or not it was reported to the runtime.
  void failed(ErrorCode code);
  /// Counts a deferred event that is given up.
  void dropped() { ++dropped_; }
  /// Notes the time at which state and cgroups matched the runtime's state.
  void reconciled();

  /// Writes all metrics of this class.
  void write(Exposition& out) const;

 private:
  /// The operation types of the kubelet's cgroup manager metric (pkg/kubelet/metrics/metrics.go,
  /// cgroup_manager_duration_seconds), in the order of Operation.
  static constexpr std::array<std::string_view, 3> kOperationNames = {"create", "update",
                                                                      "destroy"};
  static constexpr std::size_t kErrorCodes = static_cast<std::size_t>(ErrorCode::kIo) + 1;

  std::array<Histogram, kRequests.size()> requests_;
  std::array<Histogram, kOperationNames.size()> operations_;
  std::array<std::uint64_t, kErrorCodes> errors_{};
  std::uint64_t dropped_ = 0;
  std::optional<std::chrono::system_clock::time_point> last_reconcile_;
};

}  // namespace podqos::nri
