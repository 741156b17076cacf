#include "ctl/explanation.h"

#include <utility>

#include "common/base/text.h"
#include "common/core/pods/cpu_class.h"

namespace podqos::ctl {
core::CgroupLayout layout_of(core::CgroupVersion version,
                             std::vector<std::string> hugepage_labels) {
  return {.cpu = version,
          .memory = version,
          .hugetlb = version,
          .pids = version,
          .cpuset = version,
          .io = version,
          .hugepage_labels = std::move(hugepage_labels)};
}

Result<Explanation> explain(core::Pod pod, const core::PodqosAnnotations& annotations,
                            const ExplainParams& params) {
  Explanation result;
  result.pod = std::move(pod);
  result.verdict = core::classify(result.pod);
  const core::QosClass qos_class = result.verdict.qos_class;
  PODQOS_ASSIGN(result.values, core::pod_cgroup_values(result.pod, qos_class, params.config));
  core::PodRecord record;
  record.qos_class = qos_class;
  core::decide_cpu_class(record, {}, params.settings);
  core::apply_cpu_annotations(record, annotations, params.settings);
  core::set_cpu_class(result.values, record, params.settings);
  result.burst_percent = record.cpu_burst;
  if (!result.pod.uid.empty()) {
    const auto path = [&](core::Driver driver) {
      return core::pod_path(core::root_path(params.cgroup_root, driver), qos_class, result.pod.uid);
    };
    result.cgroupfs = path(core::Driver::kCgroupfs);
    // The root's name may not be that of a slice.
    PODQOS_TRY(core::format_systemd(parts_of(*result.cgroupfs, '/')));
    result.systemd = path(core::Driver::kSystemd);
  }
  for (const auto* list : {&result.pod.containers, &result.pod.init_containers}) {
    for (const core::Container& each : *list) {
      PODQOS_ASSIGN(auto values, core::container_cgroup_values(result.pod, each, params.config));
      values.pids_limit = params.config.pod_pids_limit;
      if (const auto percent = result.burst_percent)
        values.cpu_burst = core::cpu_burst_for(core::limiting_quota(values), *percent);
      const int score = core::oom_score_adj(result.pod, qos_class, each, params.node_memory);
      result.containers.push_back({each, std::move(values), score});
    }
  }
  return result;
}

Contents files_on(const core::CgroupValues& values, const core::CgroupLayout& layout,
                  core::WeightFormula formula) {
  Contents files;
  // A later write of the same file wins, as on the machine.
  for (const core::Step& step : core::lower_values("/", values, layout, formula, ""))
    if (const auto* write = std::get_if<core::WriteFile>(&step)) files[write->file] = write->value;
  return files;
}

Contents properties_on(const core::CgroupValues& values, const core::CgroupLayout& layout,
                       core::WeightFormula formula) {
  Contents properties;
  for (const core::UnitProperty& property : core::unit_properties(values, layout, formula))
    if (const auto* number = std::get_if<std::uint64_t>(&property.value))
      properties[property.name] = cat(*number);
  return properties;
}

Json json_of(const core::ResourceList& list) {
  const auto cpu = core::find(list, core::kCpu);
  const auto memory = core::find(list, core::kMemory);
  return {{"cpuMilli", cpu ? Json(cpu->milli_value()) : Json(nullptr)},
          {"memoryBytes", memory ? Json(memory->value()) : Json(nullptr)}};
}

Json json_of(const core::TierSum& sum) {
  return {{"cpuMilli", sum.cpu}, {"memoryBytes", sum.memory}};
}

Json json_of(const core::MemoryQos& qos) {
  const auto bytes = [](const std::optional<Bytes>& amount) {
    return amount == core::kUnlimitedMemory ? Json(nullptr) : json_of(amount);
  };
  return {{"memoryMinBytes", bytes(qos.min)},
          {"memoryLowBytes", bytes(qos.low)},
          {"memoryHighBytes", bytes(qos.high)}};
}

Json limits_json(const core::CgroupValues& values) {
  const auto limit = [](const auto& value) {
    return value && value->value() > 0 ? json_of(value) : Json(nullptr);
  };
  const Json quota = limit(values.cpu_quota);
  return {{"cpuShares", json_of(values.cpu_shares)},
          {"cpuQuotaUs", quota},
          {"cpuPeriodUs", quota.is_null() ? quota : json_of(values.cpu_period)},
          {"cpuBurstUs", json_of(values.cpu_burst)},
          {"memoryLimitBytes", limit(values.memory_limit)},
          {"pidsLimit", json_of(values.pids_limit)}};
}

Json rule_json(const core::CgroupValues& values) {
  const auto amount = [&](std::string_view file) -> std::optional<Bytes> {
    const auto found = values.unified.find(file);
    const auto bytes = found == values.unified.end() ? std::nullopt : parse_int(found->second);
    return bytes ? std::optional{Bytes{*bytes}} : std::nullopt;
  };
  Json json = limits_json(values);
  json["cpuIdle"] = json_of(values.cpu_idle);
  json.update(json_of(core::MemoryQos{.min = amount("memory.min"), .low = amount("memory.low")}));
  return json;
}

Json explanation_json(const Explanation& e, const ExplainParams& params) {
  Json scores = Json::object();
  Json containers = Json::object();
  for (const auto& [container, values, score] : e.containers) {
    scores[container.name] = score;
    (containers[container.name] = limits_json(values))["hugetlb"] = values.hugepages;
  }
  const CpuShares shares = e.values.cpu_shares.value_or(core::kMinShares);
  const auto v2 = layout_of(core::CgroupVersion::kV2, params.layout.hugepage_labels);
  return {{"qosClass", core::format_qos_class(e.verdict.qos_class)},
          {"cpuShares", shares},
          {"cpuWeight",
           {{"linear", core::cpu_weight_for(shares, core::WeightFormula::kLinear)},
            {"log", core::cpu_weight_for(shares, core::WeightFormula::kLog)}}},
          {"cpuQuotaUs", json_of(e.values.cpu_quota)},
          {"cpuPeriodUs", json_of(e.values.cpu_period)},
          {"memoryLimitBytes", json_of(e.values.memory_limit)},
          {"pidsLimit", json_of(e.values.pids_limit)},
          {"hugetlb", e.values.hugepages},
          {"unified", e.values.unified.empty() ? Json(nullptr) : Json(e.values.unified)},
          {"podRequests", json_of(core::pod_requests(e.pod))},
          {"podLimits", json_of(core::pod_limits(e.pod))},
          {"oomScoreAdj", std::move(scores)},
          {"containers", std::move(containers)},
          {"cgroupfs", json_of(e.cgroupfs)},
          {"systemd", json_of(e.systemd)},
          {"writes",
           {{"cgroupfs", files_on(e.values, params.is_v1() ? params.layout : v2, params.formula)},
            {"systemd", properties_on(e.values, v2, params.formula)}}}};
}

}  // namespace podqos::ctl
