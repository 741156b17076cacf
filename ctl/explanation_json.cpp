#include "ctl/explanation.h"
#include "ctl/json.h"

namespace podqos::ctl {

Json json_of(const core::ResourceList& list) {
  const auto cpu = core::find(list, core::kCpu);
  const auto memory = core::find(list, core::kMemory);
  Json json;
  json["cpuMilli"] = cpu ? Json(cpu->milli_value()) : Json(nullptr);
  json["memoryBytes"] = memory ? Json(memory->value()) : Json(nullptr);
  return json;
}

Json limits_json(const core::CgroupValues& values) {
  const auto limit = [](const auto& value) {
    return value && value->value() > 0 ? json_of(value) : Json(nullptr);
  };
  const Json quota = limit(values.cpu_quota);
  Json json;
  json["cpuShares"] = json_of(values.cpu_shares);
  json["cpuQuotaUs"] = quota;
  json["cpuPeriodUs"] = quota.is_null() ? quota : json_of(values.cpu_period);
  json["memoryLimitBytes"] = limit(values.memory_limit);
  json["pidsLimit"] = json_of(values.pids_limit);
  return json;
}

namespace {

Json hugepages_json(const core::HugePageLimits& limits) {
  Json json = Json::object();
  for (const auto& [size, limit] : limits)
    json[size] = limit.value();
  return json;
}

Json weights_json(const std::optional<CpuShares>& shares) {
  const auto weight = [&](core::WeightFormula formula) {
    return shares ? Json(core::cpu_weight_for(*shares, formula).value()) : Json(nullptr);
  };
  return {{"linear", weight(core::WeightFormula::kLinear)},
          {"log", weight(core::WeightFormula::kLog)}};
}

Json tier_json(const core::CgroupValues& values) {
  return {{"cpuShares", json_of(values.cpu_shares)},
          {"memoryLimitBytes", json_of(values.memory_limit)}};
}

}  // namespace

Json explanation_json(const Explanation& e) {
  Json json;
  json["qosClass"] = core::format_qos_class(e.qos_class);
  json["cpuShares"] = json_of(e.values.cpu_shares);
  json["cpuWeight"] = weights_json(e.values.cpu_shares);
  json["cpuQuotaUs"] = json_of(e.values.cpu_quota);
  json["cpuPeriodUs"] = json_of(e.values.cpu_period);
  json["memoryLimitBytes"] = json_of(e.values.memory_limit);
  json["pidsLimit"] = json_of(e.values.pids_limit);
  json["hugetlb"] = hugepages_json(e.values.hugepages);
  json["unified"] = e.values.unified.empty() ? Json(nullptr) : Json(e.values.unified);
  json["podRequests"] = json_of(e.requests);
  json["podLimits"] = json_of(e.limits);
  json["oomScoreAdj"] = e.oom_score_adj;
  Json& containers = json["containers"] = Json::object();
  for (const auto& [name, values] : e.containers)
    (containers[name] = limits_json(values))["hugetlb"] = hugepages_json(values.hugepages);
  json["cgroupfs"] = json_of(e.cgroupfs);
  json["systemd"] = json_of(e.systemd);
  json["writes"] = {{"cgroupfs", e.files}, {"systemd", e.systemd_writes.properties}};
  return json;
}

Json tiers_json(const core::TierValues& values) {
  return {{"burstable", tier_json(values.burstable)}, {"besteffort", tier_json(values.besteffort)}};
}

Json tier_memory_qos_json(const core::TierMemoryQos& values) {
  Json json;
  json["guaranteed"]["memory.min"] = std::to_string(values.root_memory_min.value());
  json["burstable"]["memory.low"] = std::to_string(values.burstable_memory_low.value());
  json["besteffort"] = nullptr;
  return json;
}

}  // namespace podqos::ctl
