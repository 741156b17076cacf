#include "common/app/node_metrics.h"

#include <array>
#include <cstdint>
#include <utility>

#include "common/base/units.h"
#include "common/cgroup/cgroup_view.h"
#include "common/core/kubernetes/qos.h"
#include "common/store/store.h"

namespace podqos::app {

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

/// CPU limit in cores; nullopt without a quota.
std::optional<double> cpu_limit(const cgroup::CgroupView& cgroup) {
  const auto quota = cgroup.cpu_quota();
  const auto period = cgroup.cpu_period();
  if (!quota || !period || period->value() == 0) return std::nullopt;
  return static_cast<double>(quota->value()) / static_cast<double>(period->value());
}

/// A metric with one sample for each `Of`.
template <class Of>
struct Metric {
  std::string_view type;
  std::string_view name;
  std::string_view help;
  std::optional<double> (*value)(const Of&);
};
using Tier = TierFigures;
constexpr auto kTierMetrics = std::to_array<Metric<Tier>>({
    {"gauge", "podqos_tier_cpu_shares", "CPU shares of the tier (cgroup v1).",
     [](const Tier& t) { return scaled(t.cgroup.cpu_shares()); }},
    {"gauge", "podqos_tier_cpu_weight", "CPU weight of the tier (cgroup v2).",
     [](const Tier& t) { return scaled(t.cgroup.cpu_weight()); }},
    {"gauge", "podqos_tier_cpu_limit_cores", "CPU quota of the tier in CPUs; absent without one.",
     [](const Tier& t) { return cpu_limit(t.cgroup); }},
    {"counter", "podqos_tier_cpu_usage_seconds_total",
     "CPU time that the tier has used, in seconds.",
     [](const Tier& t) { return scaled(t.cgroup.cpu_usage_ns(), kNano); }},
    {"gauge", "podqos_tier_memory_limit_bytes",
     "Memory limit of the tier as the kernel has it; absent without one.",
     [](const Tier& t) { return scaled(t.cgroup.memory_limit()); }},
    {"gauge", "podqos_tier_memory_limit_wanted_bytes",
     "Memory limit that the reservation (qosReserved) asks for: the kernel's is higher "
     "while the tier uses more than that.",
     [](const Tier& t) { return scaled(t.wanted_memory_limit); }},
    {"gauge", "podqos_tier_memory_limit_gap_bytes",
     "How far the kernel's memory limit is above the one that is asked for, or above "
     "tierMemoryFloor if that is higher: podqos lowers it as the tier's usage falls.",
     [](const Tier& t) { return scaled(t.memory_limit_gap()); }},
    {"gauge", "podqos_tier_memory_usage_bytes", "Memory charged to the tier, page cache included.",
     [](const Tier& t) { return scaled(t.cgroup.memory_usage()); }},
    {"gauge", "podqos_tier_memory_min_bytes",
     "Memory of the tier that is never reclaimed (memory.min, cgroup v2).",
     [](const Tier& t) { return scaled(t.cgroup.protection("memory.min")); }},
    {"gauge", "podqos_tier_memory_low_bytes",
     "Memory of the tier that is reclaimed last (memory.low, cgroup v2).",
     [](const Tier& t) { return scaled(t.cgroup.protection("memory.low")); }},
    {"counter", "podqos_tier_memory_throttlings_total",
     "Times that containers of the tier were throttled at memory.high (cgroup v2).",
     [](const Tier& t) { return scaled(t.cgroup.throttled_events()); }},
    {"counter", "podqos_tier_oom_kills_total",
     "Processes in the tier that the OOM killer has ended (cgroup v2).",
     [](const Tier& t) { return scaled(t.cgroup.oom_kills()); }},
    {"gauge", "podqos_tier_threads", "Processes and threads in the tier.",
     [](const Tier& t) { return scaled(t.cgroup.pids()); }},
});

void write_tiers(const NodeFigures& figures, codec::Exposition& out) {
  for (const Metric<Tier>& metric : kTierMetrics) {
    out.metric(metric.type, metric.name, metric.help);
    for (const TierFigures& tier : figures.tiers) {
      const auto value = metric.value(tier);
      if (!value) continue;
      out.sample({{"tier", tier_label(tier.qos_class)}, {"cgroup", tier.cgroup.path()}}, *value);
    }
  }
}

/// Writes a metric of the tiers' pressure stall information (Documentation/accounting/psi.rst).
void write_pressure(const NodeFigures& figures, codec::Exposition& out,
                    std::optional<double> (*value)(const cgroup::Pressure&)) {
  for (const TierFigures& tier : figures.tiers) {
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
void write_sums(const NodeFigures& figures, codec::Exposition& out,
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
void write_pods(const NodeFigures& figures, codec::Exposition& out) {
  using core::TierSum;
  out.metric("gauge", "podqos_pods",
             "Pods that podqos knows, by QoS class and by whose cgroup they live in: podqos', or "
             "a kubelet's.");
  write_sums(figures, out, [](const TierSum& sum) { return static_cast<double>(sum.pods); });
  out.metric("gauge", "podqos_pod_requests_cpu_cores",
             "CPU that the pods of a QoS class request, in CPUs, as far as it counts.");
  write_sums(figures, out,
             [](const TierSum& sum) { return static_cast<double>(sum.cpu.value()) * kMilli; });
  out.metric("gauge", "podqos_pod_requests_memory_bytes",
             "Memory that the pods of a QoS class request, as far as it is reserved for them.");
  write_sums(figures, out,
             [](const TierSum& sum) { return static_cast<double>(sum.memory.value()); });
}

/// Of pods that have series of their own.
using Pod = PodFigures;
constexpr auto kPodMetrics = std::to_array<Metric<Pod>>({
    {"counter", "podqos_pod_cpu_usage_seconds_total", "CPU time that the pod has used, in seconds.",
     [](const Pod& p) { return scaled(p.cgroup.cpu_usage_ns(), kNano); }},
    {"gauge", "podqos_pod_cpu_request_cores",
     "CPU that the pod requests, in CPUs; absent without a request.",
     [](const Pod& p) { return scaled(p.cpu_request, kMilli); }},
    {"gauge", "podqos_pod_cpu_limit_cores", "CPU quota of the pod in CPUs; absent without one.",
     [](const Pod& p) { return cpu_limit(p.cgroup); }},
    {"gauge", "podqos_pod_memory_usage_bytes", "Memory charged to the pod, page cache included.",
     [](const Pod& p) { return scaled(p.cgroup.memory_usage()); }},
    {"gauge", "podqos_pod_memory_working_set_bytes",
     "Memory charged to the pod without page cache that was not used lately.",
     [](const Pod& p) { return scaled(p.cgroup.working_set()); }},
    {"gauge", "podqos_pod_memory_request_bytes",
     "Memory that the pod requests; absent without a request.",
     [](const Pod& p) { return scaled(p.memory_request); }},
    {"gauge", "podqos_pod_memory_limit_bytes",
     "Memory limit of the pod as the kernel has it; absent without one.",
     [](const Pod& p) { return scaled(p.cgroup.memory_limit()); }},
    {"counter", "podqos_pod_oom_kills_total", "Processes of the pod that the OOM killer has ended.",
     [](const Pod& p) { return scaled(std::optional{p.oom_kills}); }},
});

/// Writes one count of the pods' own CPU quotas, which have no container in their label, and of
/// those of containers.
void write_quotas(const NodeFigures& figures, codec::Exposition& out,
                  std::optional<std::int64_t> (*count)(const cgroup::CgroupView&)) {
  for (const PodFigures& pod : figures.pods) {
    for (const auto& [container, cgroup] : pod.quotas) {
      // Without a quota no period counts.
      if (cgroup.cpu_periods().value_or(0) == 0) continue;
      if (const auto value = scaled(count(cgroup)))
        out.sample({{"namespace", pod.pod_namespace},
                    {"pod", pod.name},
                    {"uid", pod.uid},
                    {"qos_class", core::format_qos_class(pod.qos_class)},
                    {"container", container}},
                   *value);
    }
  }
}

/// Writes the series of single pods.
void write_single_pods(const NodeFigures& figures, codec::Exposition& out) {
  for (const Metric<Pod>& metric : kPodMetrics) {
    out.metric(metric.type, metric.name, metric.help);
    for (const PodFigures& pod : figures.pods) {
      if (const auto value = metric.value(pod))
        out.sample({{"namespace", pod.pod_namespace},
                    {"pod", pod.name},
                    {"uid", pod.uid},
                    {"qos_class", core::format_qos_class(pod.qos_class)}},
                   *value);
    }
  }
  out.metric("counter", "podqos_pod_cpu_cfs_periods_total",
             "Periods of the CPU quota of the pod, or of one of its containers, in which it had "
             "work.");
  write_quotas(figures, out, [](const cgroup::CgroupView& held) { return held.cpu_periods(); });
  out.metric("counter", "podqos_pod_cpu_cfs_throttled_periods_total",
             "Those periods in which it had used up its quota and was throttled.");
  write_quotas(figures, out,
               [](const cgroup::CgroupView& held) { return held.cpu_throttled_periods(); });
}

}  // namespace

std::string_view tier_label(core::QosClass qos_class) {
  constexpr std::array<std::string_view, 3> kLabels = {"kubepods", "burstable", "besteffort"};
  return kLabels.at(static_cast<std::size_t>(qos_class));
}

void write_node_metrics(const std::optional<NodeFigures>& figures, codec::Exposition& out) {
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
  write_single_pods(*figures, out);
}

NodeMetrics node_metrics(const core::Settings& settings) {
  const auto read = [&]() -> Result<NodeFigures> {
    // Without state there are no pods yet: all counts are 0.
    PODQOS_ASSIGN(auto records,
                  store::Store::open({.path = settings.state_dir}, store::Opening::kReadUnlocked));
    return node_figures(settings, records);
  };
  NodeMetrics metrics;
  std::optional<NodeFigures> figures;
  if (auto found = read()) {
    metrics.incidents = found->incidents;
    figures = *std::move(found);
  } else {
    metrics.error = std::move(found).error().with_context("metrics omit pods and tiers");
  }
  codec::Exposition out;
  out.metric("gauge", "podqos_build_info", "1, with the version of podqos as a label.");
  out.sample({{"version", PODQOS_VERSION}}, 1);
  write_node_metrics(figures, out);
  metrics.text = std::move(out).release();
  return metrics;
}

}  // namespace podqos::app
