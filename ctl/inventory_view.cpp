#include "ctl/inventory_view.h"

#include <linux/capability.h>

#include <array>

#include "common/app/configuration.h"
#include "common/base/text.h"
#include "common/core/whole_pod.h"
#include "ctl/json_text.h"

namespace podqos::ctl {
namespace {

/// The marks of ownership on cgroups are trusted.* attributes: only this capability may read them.
constexpr std::array kKept = {CAP_SYS_ADMIN};

template <class Tag>
std::string json_of(const std::optional<Unit<Tag>>& value) {
  return value ? std::to_string(value->value()) : "null";
}
std::string json_of(const std::optional<std::int64_t>& value) {
  return value ? std::to_string(*value) : "null";
}

std::string json_reading(const app::CgroupReading& reading,
                         const std::optional<CpuShares>& shares) {
  return cat(R"("exists":)", reading.exists ? "true" : "false", R"(,"shares":)", json_of(shares),
             R"(,"weight":)", json_of(reading.cpu_weight), R"(,"quotaUs":)",
             json_of(reading.cpu_quota), R"(,"periodUs":)", json_of(reading.cpu_period),
             R"(,"memoryLimitBytes":)", json_of(reading.memory_limit), R"(,"memoryUsageBytes":)",
             json_of(reading.memory_usage), R"(,"pidsLimit":)", json_of(reading.pids_limit),
             R"(,"pids":)", json_of(reading.pids));
}

std::string json_rule(const core::CgroupValues& rule) {
  return cat(R"({"shares":)", json_of(rule.cpu_shares), R"(,"quotaUs":)", json_of(rule.cpu_quota),
             R"(,"periodUs":)", json_of(rule.cpu_period), R"(,"memoryLimitBytes":)",
             json_of(rule.memory_limit), R"(,"pidsLimit":)", json_of(rule.pids_limit), "}");
}

std::string json_list(const core::ResourceList& list) {
  const auto cpu = core::find(list, core::kCpu);
  const auto memory = core::find(list, core::kMemory);
  return cat(R"({"cpuMilli":)", cpu ? std::to_string(cpu->milli_value()) : "null",
             R"(,"memoryBytes":)", memory ? std::to_string(memory->value()) : "null", "}");
}

std::string json_container(const app::ContainerEntry& container, core::WeightFormula formula) {
  const core::ContainerRecord& record = container.record;
  const std::string score =
      container.oom_score_adj ? std::to_string(*container.oom_score_adj) : "null";
  return cat(R"({"id":)", json_quote(record.id), R"(,"name":)", json_quote(record.name),
             R"(,"state":)", json_quote(format_state(container)), R"(,"sandbox":)",
             record.sandbox ? "true" : "false", R"(,"pid":)", record.pid.value(), R"(,"cgroup":)",
             json_quote(record.cgroup), R"(,"oomScoreAdj":)", score, ",",
             json_reading(container.reading, app::shares_of(container.reading, {}, formula)), "}");
}

std::string json_pod(const app::PodEntry& entry, core::WeightFormula formula) {
  const core::PodRecord& record = entry.record;
  std::string containers;
  for (const app::ContainerEntry& container : entry.containers)
    containers += cat(containers.empty() ? "" : ",", json_container(container, formula));
  return cat(
      R"({"uid":)", json_quote(record.pod.uid), R"(,"name":)", json_quote(record.pod.name),
      R"(,"namespace":)", json_quote(record.pod.pod_namespace), R"(,"qosClass":)",
      json_quote(core::format_qos_class(record.qos_class)), R"(,"source":)",
      json_quote(format_source(record.class_source)), R"(,"complete":)",
      record.complete ? "true" : "false", R"(,"adopted":)", record.adopted ? "true" : "false",
      R"(,"cgroup":)", json_quote(record.cgroup), R"(,"requests":)",
      json_list(core::requests_of(record)), R"(,"limits":)", json_list(limits_shown(entry)),
      R"(,"rule":)", json_rule(entry.rule), ",",
      json_reading(entry.reading, app::shares_of(entry.reading, entry.rule.cpu_shares, formula)),
      R"(,"containers":[)", containers, "]}");
}

std::string json_tier(const app::TierEntry& tier, core::WeightFormula formula) {
  return cat(
      R"({"qosClass":)", json_quote(core::format_qos_class(tier.qos_class)), R"(,"cgroup":)",
      json_quote(tier.path), R"(,"pods":)", tier.sum.pods, R"(,"requests":{"cpuMilli":)",
      tier.sum.cpu.value(), R"(,"memoryBytes":)", tier.sum.memory.value(), R"(},"rule":)",
      json_rule(tier.rule), ",",
      json_reading(tier.reading, app::shares_of(tier.reading, tier.rule.cpu_shares, formula)), "}");
}

std::string json_top(const app::TierEntry& top, core::WeightFormula formula) {
  return cat(R"({"cgroup":)", json_quote(top.path), R"(,"pods":)", top.sum.pods, R"(,"rule":)",
             json_rule(top.rule), ",",
             json_reading(top.reading, app::shares_of(top.reading, top.rule.cpu_shares, formula)),
             "}");
}

}  // namespace

Result<std::optional<app::Inventory>> observe(const Globals& globals) {
  if (auto status = narrow(kKept); !status) return fail(std::move(status).error());
  const auto settings = app::load_settings(globals.config);
  if (!settings) return fail(settings.error());
  return app::read_inventory(*settings);
}

std::string format_inventory(const std::optional<app::Inventory>& inventory) {
  const app::Inventory empty;
  const app::Inventory& all = inventory ? *inventory : empty;
  std::string tiers;
  for (const app::TierEntry& tier : all.tiers)
    tiers += cat(tiers.empty() ? "" : ",", json_tier(tier, all.formula));
  std::string pods;
  for (const app::PodEntry& pod : all.pods)
    pods += cat(pods.empty() ? "" : ",", json_pod(pod, all.formula));
  std::string warnings;
  for (const std::string& warning : all.warnings)
    warnings += cat(warnings.empty() ? "" : ",", json_quote(warning));
  return cat(R"({"kubepods":)", all.kubepods.empty() ? "null" : json_quote(all.kubepods),
             R"(,"adopted":{"pods":)", all.adopted.pods, R"(,"requests":{"cpuMilli":)",
             all.adopted.cpu.value(), R"(,"memoryBytes":)", all.adopted.memory.value(),
             R"(}},"top":)", all.top ? json_top(*all.top, all.formula) : "null",
             R"(,"weightFormula":)",
             all.formula == core::WeightFormula::kLog ? R"("log")" : R"("linear")", R"(,"tiers":[)",
             tiers, R"(],"pods":[)", pods, R"(],"warnings":[)", warnings, "]}\n");
}

core::ResourceList limits_shown(const app::PodEntry& pod) {
  if (!pod.record.adopted) return core::limits_of(pod.record);
  core::ResourceList limits;
  const app::CgroupReading& reading = pod.reading;
  if (reading.cpu_quota) {
    const Micros period = reading.cpu_period.value_or(core::kDefaultPeriod);
    if (const auto cpu = core::milli_cpu_for_quota(*reading.cpu_quota, period))
      limits.emplace(core::kCpu, core::Quantity::from_milli(cpu->value()));
  }
  if (reading.memory_limit)
    limits.emplace(core::kMemory, core::Quantity::from_units(reading.memory_limit->value()));
  return limits;
}

std::string pod_title(const core::Pod& pod) {
  if (pod.name.empty()) return printable(pod.uid);
  return cat(printable(pod.pod_namespace), pod.pod_namespace.empty() ? "" : "/",
             printable(pod.name));
}

std::string_view format_source(core::ClassSource source) {
  switch (source) {
    case core::ClassSource::kEngine: return "engine";
    case core::ClassSource::kPodAnnotation: return "podqos.io/pod";
    case core::ClassSource::kQosAnnotation: return "podqos.io/qos-class";
    case core::ClassSource::kShortForms: return "podqos.io/requests, limits";
    case core::ClassSource::kCriSums: return "CRI pod sums";
    case core::ClassSource::kInference: return "inference";
  }
  return "";
}

std::string_view format_state(const app::ContainerEntry& container) {
  if (!container.alive) return "dead";
  return container.record.state == core::ContainerState::kLive ? "live" : "pending";
}

}  // namespace podqos::ctl
