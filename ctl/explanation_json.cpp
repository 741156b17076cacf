#include <concepts>

#include "common/base/text.h"
#include "ctl/explanation.h"
#include "ctl/json_text.h"

namespace podqos::ctl {
namespace {

std::string json_of(const std::optional<std::int64_t>& value) {
  return value ? std::to_string(*value) : "null";
}
template <class Tag>
std::string json_of(const std::optional<Unit<Tag>>& value) {
  return value ? std::to_string(value->value()) : "null";
}
std::string json_of(const std::optional<std::string>& value) {
  return value ? json_quote(*value) : "null";
}
std::string json_value(int value) {
  return std::to_string(value);
}
std::string json_value(Bytes value) {
  return std::to_string(value.value());
}
std::string json_value(const std::string& value) {
  return json_quote(value);
}

std::string json_value(const core::CgroupValues& container);

template <class Map>
std::string json_map(const Map& values) {
  std::string out = "{";
  for (const auto& [key, value] : values)
    out += cat(out.size() > 1 ? "," : "", json_quote(key), ":", json_value(value));
  return out + "}";
}

std::string json_sums(const core::ResourceList& list) {
  const auto cpu = core::find(list, core::kCpu);
  const auto memory = core::find(list, core::kMemory);
  return cat(R"({"cpuMilli":)", cpu ? std::to_string(cpu->milli_value()) : "null",
             R"(,"memoryBytes":)", memory ? std::to_string(memory->value()) : "null", "}");
}

std::string json_weights(const std::optional<CpuShares>& shares) {
  if (!shares) return R"({"linear":null,"log":null})";
  return cat(R"({"linear":)", core::cpu_weight_for(*shares, core::WeightFormula::kLinear).value(),
             R"(,"log":)", core::cpu_weight_for(*shares, core::WeightFormula::kLog).value(), "}");
}

std::string json_tier(const core::CgroupValues& values) {
  return cat(R"({"cpuShares":)", json_of(values.cpu_shares), R"(,"memoryLimitBytes":)",
             json_of(values.memory_limit), "}");
}

/// 0 stands for "none", as upstream.
template <class Tag>
std::string json_limit(const std::optional<Unit<Tag>>& limit) {
  return limit && limit->value() > 0 ? std::to_string(limit->value()) : "null";
}

std::string json_value(const core::CgroupValues& container) {
  const bool limited = container.cpu_quota.value_or(Micros{0}).value() > 0;
  return cat(R"({"cpuShares":)", json_of(container.cpu_shares), R"(,"cpuQuotaUs":)",
             json_limit(container.cpu_quota), R"(,"cpuPeriodUs":)",
             limited ? json_of(container.cpu_period) : "null", R"(,"memoryLimitBytes":)",
             json_limit(container.memory_limit), R"(,"pidsLimit":)", json_of(container.pids_limit),
             R"(,"hugetlb":)", json_map(container.hugepages), "}");
}

}  // namespace

std::string format_explanation(const Explanation& e) {
  return cat(R"("qosClass":)", json_quote(core::format_qos_class(e.qos_class)), R"(,"cpuShares":)",
             json_of(e.values.cpu_shares), R"(,"cpuWeight":)", json_weights(e.values.cpu_shares),
             R"(,"cpuQuotaUs":)", json_of(e.values.cpu_quota), R"(,"cpuPeriodUs":)",
             json_of(e.values.cpu_period), R"(,"memoryLimitBytes":)",
             json_of(e.values.memory_limit), R"(,"pidsLimit":)", json_of(e.values.pids_limit),
             R"(,"hugetlb":)", json_map(e.values.hugepages), R"(,"unified":)",
             e.values.unified.empty() ? "null" : json_map(e.values.unified), R"(,"podRequests":)",
             json_sums(e.requests), R"(,"podLimits":)", json_sums(e.limits), R"(,"oomScoreAdj":)",
             json_map(e.oom_score_adj), R"(,"containers":)", json_map(e.containers),
             R"(,"cgroupfs":)", json_of(e.cgroupfs), R"(,"systemd":)", json_of(e.systemd),
             R"(,"writes":{"cgroupfs":)", json_map(e.files), R"(,"systemd":)",
             json_map(e.systemd_writes.properties), "}");
}

std::string format_tiers(const core::TierValues& values) {
  return cat(R"("tiers":{"burstable":)", json_tier(values.burstable), R"(,"besteffort":)",
             json_tier(values.besteffort), "}");
}

std::string format_tier_memory_qos(const core::TierMemoryQos& values) {
  return cat(R"("memoryQoSUnified":{"guaranteed":{"memory.min":")", values.root_memory_min.value(),
             R"("},"burstable":{"memory.low":")", values.burstable_memory_low.value(),
             R"("},"besteffort":null})");
}

}  // namespace podqos::ctl
