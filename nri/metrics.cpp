#include "nri/metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

namespace podqos::nri {

namespace {

/// Appends text with a backslash before each special character; a line feed becomes "\n".
void append_escaped(std::string& out, std::string_view text, std::string_view special) {
  for (const char c : text) {
    if (special.contains(c)) out += '\\';
    out += c == '\n' ? 'n' : c;
  }
}

/// A number with as few digits as represent it exactly.
std::string format_number(double value) {
  // Without an exponent, for readability, up to 2^53, where a double no longer holds each integer.
  constexpr double kLeast = 1e-6;
  constexpr double kMost = 9007199254740992.0;
  const double size = std::abs(value);
  const auto format =
      size >= kLeast && size <= kMost ? std::chars_format::fixed : std::chars_format::general;
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.begin(), text.end(), value, format);
  return {text.data(), end.ptr};
}

}  // namespace

void Exposition::metric(std::string_view type, std::string_view name, std::string_view help) {
  type_ = type;
  name_ = name;
  help_ = help;
  has_samples_ = false;
}

void Exposition::sample(Labels labels, double value, std::string_view suffix) {
  if (!std::exchange(has_samples_, true)) {
    text_.append("# HELP ").append(name_).append(" ");
    append_escaped(text_, help_, "\\\n");
    text_.append("\n# TYPE ").append(name_).append(" ").append(type_).append("\n");
  }
  text_.append(name_).append(suffix);
  char before = '{';
  for (const auto& [name, text] : labels) {
    text_ += std::exchange(before, ',');
    text_.append(name).append("=\"");
    append_escaped(text_, text, "\\\"\n");
    text_ += '"';
  }
  text_.append(labels.size() == 0 ? " " : "} ").append(format_number(value)).append("\n");
}

void Exposition::single(std::string_view type, std::string_view name, std::string_view help,
                        double value) {
  metric(type, name, help);
  sample({}, value);
}

void Histogram::observe(std::chrono::steady_clock::duration time) {
  const double seconds = std::chrono::duration<double>{time}.count();
  const auto bound = std::ranges::lower_bound(kBounds, seconds);
  ++counts_.at(static_cast<std::size_t>(std::distance(kBounds.begin(), bound)));
  sum_ += seconds;
}

void Histogram::write(Exposition& out, const Label& label) const {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    count += counts_.at(i);
    const std::string bound = i < kBounds.size() ? format_number(kBounds.at(i)) : "+Inf";
    out.sample({label, {"le", bound}}, static_cast<double>(count), "_bucket");
  }
  out.sample({label}, sum_, "_sum");
  out.sample({label}, static_cast<double>(count), "_count");
}

void Metrics::handled(Request request, std::chrono::steady_clock::duration time) {
  requests_.at(static_cast<std::size_t>(request)).observe(time);
  const Operation operation = kind_of(request).operation;
  if (operation != Operation::kNone)
    operations_.at(static_cast<std::size_t>(operation)).observe(time);
}

void Metrics::failed(ErrorCode code) {
  ++errors_.at(static_cast<std::size_t>(code));
}

void Metrics::reconciled() {
  last_reconcile_ = std::chrono::system_clock::now();
}

void Metrics::write(Exposition& out) const {
  out.metric("histogram", "podqos_nri_request_duration_seconds",
             "Time in seconds that a request of the runtime took podqos, by NRI request: from the "
             "whole message to the answer.");
  for (std::size_t i = 0; i < requests_.size(); ++i)
    requests_.at(i).write(out, {"request", kRequests.at(i).name});
  out.metric("histogram", "podqos_cgroup_manager_duration_seconds",
             "Duration in seconds for cgroup operations of podqos-nri, broken down by method: "
             "create (a pod or container joins), update (it started, or its resources changed), "
             "destroy (it has ended).");
  for (std::size_t i = 0; i < operations_.size(); ++i)
    operations_.at(i).write(out, {"operation_type", kOperationNames.at(i)});
  out.metric("counter", "podqos_errors_total",
             "Requests of the runtime, and clean-ups of podqos-nri, that failed, by kind of error; "
             "under onError \"admit\" the runtime was not told.");
  for (std::size_t i = 0; i < errors_.size(); ++i) {
    out.sample({{"code", format_error_code(static_cast<ErrorCode>(i))}},
               static_cast<double>(errors_.at(i)));
  }
  out.single("counter", "podqos_nri_dropped_events_total",
             "Events of pods and containers that podqos-nri could not handle in time and, after "
             "further attempts, has given up.",
             static_cast<double>(dropped_));
  if (!last_reconcile_) return;
  const std::chrono::duration<double> time = last_reconcile_->time_since_epoch();
  out.single("gauge", "podqos_last_reconcile_timestamp_seconds",
             "Unix time at which podqos-nri last made state and cgroups agree with all that the "
             "runtime has (Synchronize); absent before.",
             time.count());
}

}  // namespace podqos::nri
