#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace podqos::nri {

enum class MetricType : std::uint8_t { kCounter, kGauge, kHistogram };

/// A label of a sample. The value may be any UTF-8; it is escaped on output.
struct Label {
  std::string_view name;
  std::string value;
};
using Labels = std::vector<Label>;

/// One line of the exposition.
struct Sample {
  std::string_view suffix;  ///< after the metric's name, such as "_sum" of a histogram
  Labels labels;
  double value = 0;
};

/// One metric with all its samples.
struct MetricFamily {
  MetricType type = MetricType::kGauge;
  std::string_view name;
  std::string_view help;
  std::vector<Sample> samples;
};

/// Formats families in the text format of Prometheus, version 0.0.4; omits those without samples.
/// @note https://prometheus.io/docs/instrumenting/exposition_formats/
[[nodiscard]] std::string format_exposition(std::span<const MetricFamily> families);

/// A distribution of durations, with Prometheus' cumulative buckets.
class Histogram {
 public:
  /// Counts one duration.
  void observe(std::chrono::steady_clock::duration time);
  /// Appends the samples: for each bound the number of durations up to it, their sum in seconds,
  /// and their number.
  void add_to(MetricFamily& family, const Label& label) const;

 private:
  /// In seconds. From 5 ms on these are the kubelet's, which are Prometheus' defaults, up to more
  /// than the request timeout of a runtime; the smaller ones resolve what a plugin usually needs.
  static constexpr std::array kBounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                         0.025,  0.05,    0.1,    0.25,  0.5,    1.0,   2.5};

  std::array<std::uint64_t, kBounds.size() + 1> counts_{};  ///< above the last bound, up to this
  double sum_ = 0;                                          ///< seconds
};

}  // namespace podqos::nri
