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

struct Label {
  std::string_view name;
  std::string value;
};
using Labels = std::vector<Label>;

struct Sample {
  std::string_view suffix;  ///< behind the metric's name: "_sum" of a histogram
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

/// The text format of Prometheus, version 0.0.4; a family without samples is left out.
/// @note https://prometheus.io/docs/instrumenting/exposition_formats/
[[nodiscard]] std::string format_exposition(std::span<const MetricFamily> families);

/// How often something took how long.
class Histogram {
 public:
  void observe(std::chrono::steady_clock::duration time);
  /// Appends its samples: one a bound with all that took no longer, their sum in seconds and their
  /// number.
  void add_to(MetricFamily& family, const Label& label) const;

 private:
  /// In seconds. From 5 ms on they are the kubelet's, which are Prometheus' default, up to what is
  /// beyond every deadline of a runtime; a plugin needs less than the least of them.
  static constexpr std::array kBounds = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                         0.025,  0.05,    0.1,    0.25,  0.5,    1.0,   2.5};

  std::array<std::uint64_t, kBounds.size() + 1> counts_{};  ///< between two bounds
  double sum_ = 0;
};

}  // namespace podqos::nri
