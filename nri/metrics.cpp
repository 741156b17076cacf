#include "nri/metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "common/core/kubernetes/pod_resources.h"
#include "common/core/kubernetes/qos.h"

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

/// Factors to the base units of Prometheus: cores and seconds.
constexpr double kMilli = 1e-3;
constexpr double kMicro = 1e-6;
constexpr double kNano = 1e-9;
/// All classes, in the order of output.
constexpr std::array kClasses = {core::QosClass::kGuaranteed, core::QosClass::kBurstable,
                                 core::QosClass::kBestEffort};

/// A number in its base unit; nullopt stays nullopt.
template <class Number>
std::optional<double> scaled(const std::optional<Number>& number, double factor = 1) {
  if (!number) return std::nullopt;
  if constexpr (requires { number->value(); })
    return static_cast<double>(number->value()) * factor;
  else
    return static_cast<double>(*number) * factor;
}

/// The value of the label "tier". The Guaranteed tier is the root itself.
std::string_view tier_label(core::QosClass qos_class) {
  constexpr std::array<std::string_view, 3> kLabels = {"kubepods", "burstable", "besteffort"};
  return kLabels.at(static_cast<std::size_t>(qos_class));
}

/// CPU limit in cores; nullopt without a quota.
std::optional<double> cpu_limit(const cgroup::CgroupView& cgroup) {
  const auto quota = cgroup.cpu_quota();
  const auto period = cgroup.cpu_period();
  if (!quota || !period || period->value() == 0) return std::nullopt;
  return static_cast<double>(quota->value()) / static_cast<double>(period->value());
}

/// Metrics with one sample per tier.
struct TierMetric {
  std::string_view type;
  std::string_view name;
  std::string_view help;
  std::optional<double> (*value)(const app::TierFigures&);
};
using Tier = app::TierFigures;
constexpr std::array kTierMetrics = {
    TierMetric{"gauge", "podqos_tier_cpu_shares", "CPU shares of the tier (cgroup v1).",
               [](const Tier& t) { return scaled(t.cgroup.cpu_shares()); }},
    TierMetric{"gauge", "podqos_tier_cpu_weight", "CPU weight of the tier (cgroup v2).",
               [](const Tier& t) { return scaled(t.cgroup.cpu_weight()); }},
    TierMetric{"gauge", "podqos_tier_cpu_limit_cores",
               "CPU quota of the tier in CPUs; absent without one.",
               [](const Tier& t) { return cpu_limit(t.cgroup); }},
    TierMetric{"counter", "podqos_tier_cpu_usage_seconds_total",
               "CPU time that the tier has used, in seconds.",
               [](const Tier& t) { return scaled(t.cgroup.cpu_usage_ns(), kNano); }},
    TierMetric{"gauge", "podqos_tier_memory_limit_bytes",
               "Memory limit of the tier as the kernel has it; absent without one.",
               [](const Tier& t) { return scaled(t.cgroup.memory_limit()); }},
    TierMetric{"gauge", "podqos_tier_memory_limit_wanted_bytes",
               "Memory limit that the reservation (qosReserved) asks for: the kernel's is higher "
               "while the tier uses more than that.",
               [](const Tier& t) { return scaled(t.wanted_memory_limit); }},
    TierMetric{"gauge", "podqos_tier_memory_limit_gap_bytes",
               "How far the kernel's memory limit is above the one that is asked for, or above "
               "tierMemoryFloor if that is higher: podqos lowers it as the tier's usage falls.",
               [](const Tier& t) { return scaled(t.memory_limit_gap()); }},
    TierMetric{"gauge", "podqos_tier_memory_usage_bytes",
               "Memory charged to the tier, page cache included.",
               [](const Tier& t) { return scaled(t.cgroup.memory_usage()); }},
    TierMetric{"gauge", "podqos_tier_memory_min_bytes",
               "Memory of the tier that is never reclaimed (memory.min, cgroup v2).",
               [](const Tier& t) { return scaled(t.cgroup.protection("memory.min")); }},
    TierMetric{"gauge", "podqos_tier_memory_low_bytes",
               "Memory of the tier that is reclaimed last (memory.low, cgroup v2).",
               [](const Tier& t) { return scaled(t.cgroup.protection("memory.low")); }},
    TierMetric{"counter", "podqos_tier_memory_throttlings_total",
               "Times that containers of the tier were throttled at memory.high (cgroup v2).",
               [](const Tier& t) { return scaled(t.cgroup.throttled_events()); }},
    TierMetric{"counter", "podqos_tier_oom_kills_total",
               "Processes in the tier that the OOM killer has ended (cgroup v2).",
               [](const Tier& t) { return scaled(t.cgroup.oom_kills()); }},
    TierMetric{"gauge", "podqos_tier_threads", "Processes and threads in the tier.",
               [](const Tier& t) { return scaled(t.cgroup.pids()); }},
};

void write_tiers(const app::NodeFigures& figures, Exposition& out) {
  for (const TierMetric& metric : kTierMetrics) {
    out.metric(metric.type, metric.name, metric.help);
    for (const app::TierFigures& tier : figures.tiers) {
      const auto value = metric.value(tier);
      if (!value) continue;
      out.sample({{"tier", tier_label(tier.qos_class)}, {"cgroup", tier.cgroup.path()}}, *value);
    }
  }
}

/// Writes a metric of the tiers' pressure stall information (Documentation/accounting/psi.rst).
void write_pressure(const app::NodeFigures& figures, Exposition& out,
                    std::optional<double> (*value)(const cgroup::Pressure&)) {
  for (const app::TierFigures& tier : figures.tiers) {
    const cgroup::CgroupView& cgroup = tier.cgroup;
    for (const std::string_view resource : {"cpu", "memory", "io"}) {
      const auto pressure = cgroup.pressure(resource);
      const auto seconds = pressure ? value(*pressure) : std::nullopt;
      if (!seconds) continue;
      out.sample(
          {{"tier", tier_label(tier.qos_class)}, {"cgroup", cgroup.path()}, {"resource", resource}},
          *seconds);
    }
  }
}

/// Writes one metric of the sums of each class, for podqos's pods and for a kubelet's.
void write_sums(const app::NodeFigures& figures, Exposition& out,
                double (*value)(const core::TierSum&)) {
  for (const auto& [owner, sums] :
       {std::pair{"podqos", &figures.own}, std::pair{"kubelet", &figures.kubelets}}) {
    for (const core::QosClass qos_class : kClasses) {
      out.sample({{"qos_class", core::format_qos_class(qos_class)}, {"owner", owner}},
                 value(sums->of(qos_class)));
    }
  }
}

/// Writes numbers of pods and their requests by class.
void write_pods(const app::NodeFigures& figures, Exposition& out) {
  using core::TierSum;
  out.metric("gauge", "podqos_pods",
             "Pods that podqos knows, by QoS class and by whose cgroup they live in: podqos', or "
             "a kubelet's.");
  write_sums(figures, out, [](const TierSum& sum) { return static_cast<double>(sum.pods); });
  out.metric("gauge", "podqos_pod_requests_cpu_cores",
             "CPU that the pods of a QoS class request, in CPUs, as far as the node can grant it.");
  write_sums(figures, out,
             [](const TierSum& sum) { return static_cast<double>(sum.cpu.value()) * kMilli; });
  out.metric("gauge", "podqos_pod_requests_memory_bytes",
             "Memory that the pods of a QoS class request, as far as it is reserved for them.");
  write_sums(figures, out,
             [](const TierSum& sum) { return static_cast<double>(sum.memory.value()); });
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
  const std::string_view operation = kind_of(request).operation;
  if (!operation.empty()) operations_.at(operation).observe(time);
}

void Metrics::failed(ErrorCode code) {
  ++errors_.at(static_cast<std::size_t>(code));
}

void Metrics::evicted(core::QosClass qos_class) {
  ++evictions_[qos_class];
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
  for (const auto& [operation, times] : operations_)
    times.write(out, {"operation_type", operation});
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
  out.metric(
      "counter", "podqos_memory_limit_steps_total",
      "Steps of podqos-nri towards the memory limits that the rules ask for, where usage had "
      "kept them higher: reclaim (the kernel was asked to reclaim memory), lower (a limit "
      "was lowered), pause (under pressure, or as nothing could be reclaimed).");
  for (const auto& [step, count] :
       {std::pair{"reclaim", limit_steps_.reclaimed}, std::pair{"lower", limit_steps_.lowered},
        std::pair{"pause", limit_steps_.pauses}})
    out.sample({{"step", step}}, static_cast<double>(count));
  out.metric("counter", "podqos_evictions_total",
             "Pods that podqos-nri has evicted, by the tier that was under memory pressure; those "
             "of systemd-oomd are not counted.");
  for (const auto& [qos_class, count] : evictions_)
    out.sample({{"tier", tier_label(qos_class)}}, static_cast<double>(count));
  if (!last_reconcile_) return;
  const std::chrono::duration<double> time = last_reconcile_->time_since_epoch();
  out.single("gauge", "podqos_last_reconcile_timestamp_seconds",
             "Unix time at which podqos-nri last made state and cgroups agree with all that the "
             "runtime has (Synchronize); absent before.",
             time.count());
}

void write_node_metrics(const std::optional<app::NodeFigures>& figures, Exposition& out) {
  out.single("gauge", "podqos_collector_success",
             "Whether pods and tiers could be read: 1, or 0 and their samples are absent.",
             figures ? 1 : 0);
  if (!figures) return;
  out.single("gauge", "podqos_state_interrupted",
             "1 while an event is under way, and if an interrupted one awaits reconciliation.",
             figures->interrupted ? 1 : 0);
  out.single("gauge", "podqos_state_unreadable_records",
             "Records of pods that cannot be read: damaged, or of a newer podqos.",
             static_cast<double>(figures->unreadable));
  write_pods(*figures, out);
  write_tiers(*figures, out);
  out.metric("counter", "podqos_tier_pressure_waiting_seconds_total",
             "Time in seconds for which some task of the tier waited for the resource (PSI some, "
             "cgroup v2).");
  write_pressure(*figures, out, [](const cgroup::Pressure& pressure) {
    return scaled(std::optional{pressure.waiting}, kMicro);
  });
  out.metric("counter", "podqos_tier_pressure_stalled_seconds_total",
             "Time in seconds for which all tasks of the tier waited for the resource (PSI full, "
             "cgroup v2).");
  write_pressure(*figures, out,
                 [](const cgroup::Pressure& pressure) { return scaled(pressure.stalled, kMicro); });
}

}  // namespace podqos::nri
