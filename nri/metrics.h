#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/app/convergence.h"
#include "common/app/node_figures.h"
#include "common/base/error.h"
#include "nri/messages.h"

namespace podqos::nri {

/// Name and value of a sample's label. The value may be any UTF-8; it is escaped on output.
using Label = std::pair<std::string_view, std::string_view>;
using Labels = std::initializer_list<Label>;

/// Writes metrics in the text format of Prometheus, version 0.0.4: each call of metric() is
/// followed by those of its samples. A metric without samples is omitted.
/// @note https://prometheus.io/docs/instrumenting/exposition_formats/
class Exposition {
 public:
  /// @param type  "counter", "gauge" or "histogram"; all three outlive the samples of this metric
  void metric(std::string_view type, std::string_view name, std::string_view help);
  /// @param suffix  after the metric's name, such as "_sum" of a histogram
  void sample(Labels labels, double value, std::string_view suffix = {});
  /// Writes a metric with one sample and no labels.
  void single(std::string_view type, std::string_view name, std::string_view help, double value) {
    metric(type, name, help);
    sample({}, value);
  }

  /// The text written so far.
  [[nodiscard]] std::string release() && { return std::move(text_); }

 private:
  std::string_view type_;
  std::string_view name_;
  std::string_view help_;
  bool has_samples_ = false;  ///< of the current metric
  std::string text_;
};

/// A distribution of durations, with Prometheus' cumulative buckets.
class Histogram {
 public:
  /// Counts one duration.
  void observe(std::chrono::steady_clock::duration time);
  /// Writes the samples: for each bound the number of durations up to it, their sum in seconds, and
  /// their number.
  void write(Exposition& out, const Label& label) const;

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
  /// Notes the steps that were taken towards memory limits.
  void converged(const app::Convergence::Steps& steps) { limit_steps_ = steps; }
  /// Counts the eviction of a pod of this class, which is not Guaranteed.
  void evicted(core::QosClass qos_class);
  /// Notes the time at which state and cgroups matched the runtime's state.
  void reconciled();

  /// Writes all metrics of this class.
  void write(Exposition& out) const;

 private:
  static constexpr std::size_t kErrorCodes = static_cast<std::size_t>(ErrorCode::kIo) + 1;

  std::array<Histogram, kRequests.size()> requests_;
  std::map<std::string_view, Histogram> operations_{{kCreate, {}}, {kUpdate, {}}, {kDestroy, {}}};
  std::array<std::uint64_t, kErrorCodes> errors_{};
  std::uint64_t dropped_ = 0;
  app::Convergence::Steps limit_steps_;
  std::map<core::QosClass, std::uint64_t> evictions_{{core::QosClass::kBurstable, 0},
                                                     {core::QosClass::kBestEffort, 0}};
  std::optional<std::chrono::system_clock::time_point> last_reconcile_;
};

/// Writes the metrics of the node: pods and requests by class, and the kernel's values of the
/// tiers. A sample without a value is omitted: no sample of a limit means that there is no limit.
/// @param figures  nullopt: they could not be read; all metrics but podqos_collector_success are
///                 omitted
void write_node_metrics(const std::optional<app::NodeFigures>& figures, Exposition& out);

}  // namespace podqos::nri
