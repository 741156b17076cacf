#include "nri/exposition.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

namespace podqos::nri {

namespace {

/// Appends text with a backslash before each special character; a line feed becomes "\n".
void append_escaped(std::string& out, std::string_view text, std::string_view special) {
  for (const char c : text) {
    if (special.contains(c)) out += '\\';
    out += c == '\n' ? 'n' : c;
  }
}

/// Appends a number with as few digits as represent it exactly.
void append_number(std::string& out, double value) {
  // Without an exponent, for readability, up to 2^53, where a double no longer holds each integer.
  constexpr double kLeast = 1e-6;
  constexpr double kMost = 9007199254740992.0;
  const double size = std::abs(value);
  const auto format =
      size >= kLeast && size <= kMost ? std::chars_format::fixed : std::chars_format::general;
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.begin(), text.end(), value, format);
  out.append(text.data(), end.ptr);
}

/// A number as append_number() writes it.
std::string format_number(double value) {
  std::string out;
  append_number(out, value);
  return out;
}

/// The word of a # TYPE line.
std::string_view format_type(MetricType type) {
  switch (type) {
    case MetricType::kCounter: return "counter";
    case MetricType::kGauge: return "gauge";
    case MetricType::kHistogram: return "histogram";
  }
  return "";
}

/// Appends one line: name, labels and value.
void append_sample(std::string& out, std::string_view name, const Sample& sample) {
  out.append(name).append(sample.suffix);
  char before = '{';
  for (const Label& label : sample.labels) {
    out += std::exchange(before, ',');
    out.append(label.name).append("=\"");
    append_escaped(out, label.value, "\\\"\n");
    out += '"';
  }
  out.append(sample.labels.empty() ? " " : "} ");
  append_number(out, sample.value);
  out += '\n';
}

}  // namespace

std::string format_exposition(std::span<const MetricFamily> families) {
  std::string out;
  for (const MetricFamily& family : families) {
    if (family.samples.empty()) continue;
    out.append("# HELP ").append(family.name).append(" ");
    append_escaped(out, family.help, "\\\n");
    out.append("\n# TYPE ").append(family.name).append(" ").append(format_type(family.type));
    out += '\n';
    for (const Sample& sample : family.samples)
      append_sample(out, family.name, sample);
  }
  return out;
}

void Histogram::observe(std::chrono::steady_clock::duration time) {
  const double seconds = std::chrono::duration<double>{time}.count();
  const auto bound = std::ranges::lower_bound(kBounds, seconds);
  ++counts_.at(static_cast<std::size_t>(std::distance(kBounds.begin(), bound)));
  sum_ += seconds;
}

void Histogram::add_to(MetricFamily& family, const Label& label) const {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    count += counts_.at(i);
    const std::string bound = i < kBounds.size() ? format_number(kBounds.at(i)) : "+Inf";
    family.samples.push_back({.suffix = "_bucket",
                              .labels = {label, {.name = "le", .value = bound}},
                              .value = static_cast<double>(count)});
  }
  family.samples.push_back({.suffix = "_sum", .labels = {label}, .value = sum_});
  family.samples.push_back(
      {.suffix = "_count", .labels = {label}, .value = static_cast<double>(count)});
}

}  // namespace podqos::nri
