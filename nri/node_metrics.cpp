#include "nri/node_metrics.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "common/core/pod.h"
#include "common/core/qos.h"

namespace podqos::nri {

namespace {

/// Factors to the base units of Prometheus: cores and seconds.
constexpr double kMilli = 1e-3;
constexpr double kMicro = 1e-6;
constexpr double kNano = 1e-9;
/// All classes, in the order of output.
constexpr std::array kClasses = {core::QosClass::kGuaranteed, core::QosClass::kBurstable,
                                 core::QosClass::kBestEffort};

/// Builds one metric; samples without a value are omitted.
class Family {
 public:
  Family(MetricType type, std::string_view name, std::string_view help) {
    family_.type = type;
    family_.name = name;
    family_.help = help;
  }
  void add(Labels labels, std::optional<double> value) {
    if (value)
      family_.samples.push_back({.suffix = "", .labels = std::move(labels), .value = *value});
  }
  [[nodiscard]] MetricFamily release() && { return std::move(family_); }

 private:
  MetricFamily family_;
};

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

/// The labels of all metrics of a tier.
Labels labels_of(const app::TierFigures& tier) {
  return {{.name = "tier", .value = std::string{tier_label(tier.qos_class)}},
          {.name = "cgroup", .value = tier.cgroup.path()}};
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
  MetricType type;
  std::string_view name;
  std::string_view help;
  std::optional<double> (*value)(const app::TierFigures&);
};
using Tier = app::TierFigures;
constexpr std::array kTierMetrics = {
    TierMetric{MetricType::kGauge, "podqos_tier_cpu_shares", "CPU shares of the tier (cgroup v1).",
               [](const Tier& t) { return scaled(t.cgroup.cpu_shares()); }},
    TierMetric{MetricType::kGauge, "podqos_tier_cpu_weight", "CPU weight of the tier (cgroup v2).",
               [](const Tier& t) { return scaled(t.cgroup.cpu_weight()); }},
    TierMetric{MetricType::kGauge, "podqos_tier_cpu_limit_cores",
               "CPU quota of the tier in CPUs; absent without one.",
               [](const Tier& t) { return cpu_limit(t.cgroup); }},
    TierMetric{MetricType::kCounter, "podqos_tier_cpu_usage_seconds_total",
               "CPU time that the tier has used, in seconds.",
               [](const Tier& t) { return scaled(t.cgroup.cpu_usage_ns(), kNano); }},
    TierMetric{MetricType::kGauge, "podqos_tier_memory_limit_bytes",
               "Memory limit of the tier as the kernel has it; absent without one.",
               [](const Tier& t) { return scaled(t.cgroup.memory_limit()); }},
    TierMetric{MetricType::kGauge, "podqos_tier_memory_limit_wanted_bytes",
               "Memory limit that the reservation (qosReserved) asks for: the kernel's is higher "
               "while the tier uses more than that.",
               [](const Tier& t) { return scaled(t.wanted_memory_limit); }},
    TierMetric{MetricType::kGauge, "podqos_tier_memory_usage_bytes",
               "Memory charged to the tier, page cache included.",
               [](const Tier& t) { return scaled(t.cgroup.memory_usage()); }},
    TierMetric{MetricType::kGauge, "podqos_tier_memory_min_bytes",
               "Memory of the tier that is never reclaimed (memory.min, cgroup v2).",
               [](const Tier& t) { return scaled(t.cgroup.memory_min()); }},
    TierMetric{MetricType::kGauge, "podqos_tier_memory_low_bytes",
               "Memory of the tier that is reclaimed last (memory.low, cgroup v2).",
               [](const Tier& t) { return scaled(t.cgroup.memory_low()); }},
    TierMetric{MetricType::kCounter, "podqos_tier_oom_kills_total",
               "Processes in the tier that the OOM killer has ended (cgroup v2).",
               [](const Tier& t) { return scaled(t.cgroup.oom_kills()); }},
    TierMetric{MetricType::kGauge, "podqos_tier_threads", "Processes and threads in the tier.",
               [](const Tier& t) { return scaled(t.cgroup.pids()); }},
};

void add_tiers(const app::NodeFigures& figures, std::vector<MetricFamily>& out) {
  for (const TierMetric& metric : kTierMetrics) {
    Family family{metric.type, metric.name, metric.help};
    for (const app::TierFigures& tier : figures.tiers)
      family.add(labels_of(tier), metric.value(tier));
    out.push_back(std::move(family).release());
  }
}

/// Pressure stall information of the tiers (Documentation/accounting/psi.rst).
void add_pressure(const app::NodeFigures& figures, std::vector<MetricFamily>& out) {
  Family waiting{MetricType::kCounter, "podqos_tier_pressure_waiting_seconds_total",
                 "Time in seconds for which some task of the tier waited for the resource (PSI "
                 "some, cgroup v2)."};
  Family stalled{MetricType::kCounter, "podqos_tier_pressure_stalled_seconds_total",
                 "Time in seconds for which all tasks of the tier waited for the resource (PSI "
                 "full, cgroup v2)."};
  for (const app::TierFigures& tier : figures.tiers) {
    const cgroup::CgroupView& cgroup = tier.cgroup;
    for (const auto& [resource, pressure] :
         {std::pair{"cpu", cgroup.cpu_pressure()}, std::pair{"memory", cgroup.memory_pressure()},
          std::pair{"io", cgroup.io_pressure()}}) {
      if (!pressure) continue;
      Labels labels = labels_of(tier);
      labels.push_back({.name = "resource", .value = resource});
      waiting.add(labels, scaled(std::optional{pressure->waiting}, kMicro));
      stalled.add(std::move(labels), scaled(pressure->stalled, kMicro));
    }
  }
  out.push_back(std::move(waiting).release());
  out.push_back(std::move(stalled).release());
}

/// Numbers of pods and their requests by class.
void add_pods(const app::NodeFigures& figures, std::vector<MetricFamily>& out) {
  Family pods{MetricType::kGauge, "podqos_pods",
              "Pods that podqos knows, by QoS class and by whose cgroup they live in: podqos', or "
              "a kubelet's that podqos has adopted."};
  Family cpu{MetricType::kGauge, "podqos_pod_requests_cpu_cores",
             "CPU that the pods of a QoS class request, in CPUs, as far as the node can grant it."};
  Family memory{MetricType::kGauge, "podqos_pod_requests_memory_bytes",
                "Memory that the pods of a QoS class request, as far as it is reserved for them."};
  for (const auto& [owner, sums] :
       {std::pair{"podqos", &figures.own}, std::pair{"kubelet", &figures.adopted}}) {
    for (const core::QosClass qos_class : kClasses) {
      const core::TierSum& sum = sums->of(qos_class);
      const Labels labels = {
          {.name = "qos_class", .value = std::string{core::format_qos_class(qos_class)}},
          {.name = "owner", .value = owner}};
      pods.add(labels, static_cast<double>(sum.pods));
      cpu.add(labels, scaled(std::optional{sum.cpu}, kMilli));
      memory.add(labels, scaled(std::optional{sum.memory}));
    }
  }
  for (Family* family : {&pods, &cpu, &memory})
    out.push_back(std::move(*family).release());
}

/// A gauge with one sample and no labels.
MetricFamily single(std::string_view name, std::string_view help, double value) {
  Family family{MetricType::kGauge, name, help};
  family.add({}, value);
  return std::move(family).release();
}

}  // namespace

std::vector<MetricFamily> node_metrics(const std::optional<app::NodeFigures>& figures) {
  std::vector<MetricFamily> out;
  out.push_back(single("podqos_collector_success",
                       "Whether pods and tiers could be read: 1, or 0 and their samples are "
                       "absent.",
                       figures ? 1 : 0));
  if (!figures) return out;
  out.push_back(single("podqos_state_interrupted",
                       "1 while an event is under way, and after one that was interrupted: the "
                       "next event, or podqosctl reconcile, makes it good.",
                       figures->interrupted ? 1 : 0));
  out.push_back(single("podqos_state_unreadable_records",
                       "Records of pods that cannot be read: damaged, or of a newer podqos.",
                       static_cast<double>(figures->unreadable)));
  add_pods(*figures, out);
  add_tiers(*figures, out);
  add_pressure(*figures, out);
  return out;
}

}  // namespace podqos::nri
