#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "common/core/kubernetes/pod_resources.h"
#include "common/core/kubernetes/qos.h"
#include "nri/metrics.h"

namespace podqos::nri {

namespace {

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
  switch (qos_class) {
    case core::QosClass::kGuaranteed: return "kubepods";
    case core::QosClass::kBurstable: return "burstable";
    case core::QosClass::kBestEffort: return "besteffort";
  }
  return "";
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
    TierMetric{"gauge", "podqos_tier_memory_usage_bytes",
               "Memory charged to the tier, page cache included.",
               [](const Tier& t) { return scaled(t.cgroup.memory_usage()); }},
    TierMetric{"gauge", "podqos_tier_memory_min_bytes",
               "Memory of the tier that is never reclaimed (memory.min, cgroup v2).",
               [](const Tier& t) { return scaled(t.cgroup.memory_min()); }},
    TierMetric{"gauge", "podqos_tier_memory_low_bytes",
               "Memory of the tier that is reclaimed last (memory.low, cgroup v2).",
               [](const Tier& t) { return scaled(t.cgroup.memory_low()); }},
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

/// Writes one value of the tiers' pressure stall information (Documentation/accounting/psi.rst).
void write_pressure(const app::NodeFigures& figures, Exposition& out,
                    std::optional<double> (*value)(const cgroup::Pressure&)) {
  for (const app::TierFigures& tier : figures.tiers) {
    const cgroup::CgroupView& cgroup = tier.cgroup;
    for (const auto& [resource, pressure] :
         {std::pair{"cpu", cgroup.cpu_pressure()}, std::pair{"memory", cgroup.memory_pressure()},
          std::pair{"io", cgroup.io_pressure()}}) {
      const auto seconds = pressure ? value(*pressure) : std::nullopt;
      if (!seconds) continue;
      out.sample(
          {{"tier", tier_label(tier.qos_class)}, {"cgroup", cgroup.path()}, {"resource", resource}},
          *seconds);
    }
  }
}

void write_pressures(const app::NodeFigures& figures, Exposition& out) {
  out.metric("counter", "podqos_tier_pressure_waiting_seconds_total",
             "Time in seconds for which some task of the tier waited for the resource (PSI some, "
             "cgroup v2).");
  write_pressure(figures, out, [](const cgroup::Pressure& pressure) {
    return scaled(std::optional{pressure.waiting}, kMicro);
  });
  out.metric("counter", "podqos_tier_pressure_stalled_seconds_total",
             "Time in seconds for which all tasks of the tier waited for the resource (PSI full, "
             "cgroup v2).");
  write_pressure(figures, out,
                 [](const cgroup::Pressure& pressure) { return scaled(pressure.stalled, kMicro); });
}

/// Writes one metric of the sums of each class, for podqos's pods and for a kubelet's.
void write_sums(const app::NodeFigures& figures, Exposition& out,
                double (*value)(const core::TierSum&)) {
  for (const auto& [owner, sums] :
       {std::pair{"podqos", &figures.own}, std::pair{"kubelet", &figures.adopted}}) {
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
             "a kubelet's that podqos has adopted.");
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
  write_pressures(*figures, out);
}

}  // namespace podqos::nri
