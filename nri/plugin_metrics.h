#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "common/app/convergence.h"
#include "common/base/error.h"
#include "common/codec/exposition.h"
#include "common/core/kubernetes/pod_resources.h"
#include "nri/messages.h"

namespace podqos::nri {

/// A distribution of durations, with Prometheus' cumulative buckets.
class Histogram {
 public:
  /// Counts one duration.
  void observe(std::chrono::steady_clock::duration time);
  /// Writes the samples: for each bound the number of durations up to it, their sum in seconds, and
  /// their number.
  void write(codec::Exposition& out, const codec::Label& label) const;

 private:
  /// In seconds. From 5 ms on these are the kubelet's, which are Prometheus' defaults, up to more
  /// than the request timeout of a runtime; the smaller ones resolve what a plugin usually needs.
  static constexpr std::array kBounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                         0.025,  0.05,    0.1,    0.25,  0.5,    1.0,   2.5};

  std::array<std::uint64_t, kBounds.size() + 1> counts_{};  ///< above the last bound, up to this
  double sum_ = 0;                                          ///< seconds
};

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
  /// Counts the steps of a round towards memory limits.
  void converged(const app::ConvergenceRound& round);
  /// Counts the eviction of a pod of this class, which is not Guaranteed.
  void evicted(core::QosClass qos_class);
  /// Notes the time at which state and cgroups matched the runtime's state.
  void reconciled();

  /// Writes all metrics of this class.
  void write(codec::Exposition& out) const;

 private:
  static constexpr std::size_t kErrorCodes = static_cast<std::size_t>(ErrorCode::kIo) + 1;

  std::array<Histogram, kRequests.size()> requests_;
  std::map<std::string_view, Histogram> operations_{{kCreate, {}}, {kUpdate, {}}, {kDestroy, {}}};
  std::array<std::uint64_t, kErrorCodes> errors_{};
  std::uint64_t dropped_ = 0;
  std::map<std::string_view, std::uint64_t> limit_steps_{
      {"reclaim", 0}, {"lower", 0}, {"pause", 0}};
  std::map<core::QosClass, std::uint64_t> evictions_{{core::QosClass::kBurstable, 0},
                                                     {core::QosClass::kBestEffort, 0}};
  std::optional<std::chrono::system_clock::time_point> last_reconcile_;
};

}  // namespace podqos::nri
