#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace podqos::codec {

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

/// A number with as few digits as represent it exactly, as the format has it.
[[nodiscard]] std::string format_metric_value(double value);

}  // namespace podqos::codec
