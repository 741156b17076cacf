#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

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
  void single(std::string_view type, std::string_view name, std::string_view help, double value);

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

}  // namespace podqos::nri
