#include <array>
#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "common/base/text.h"
#include "common/codec/settings_json.h"
#include "common/codec/settings_words.h"

namespace podqos::codec {

namespace {

using nlohmann::ordered_json;

/// A number and the largest unit that divides it.
struct Step {
  std::string_view unit;
  std::int64_t size;
};

template <class Steps>
std::string in_largest_unit(std::int64_t value, const Steps& steps) {
  if (value == 0) return "0";
  for (const Step& step : steps) {
    if (value % step.size == 0) return cat(value / step.size, step.unit);
  }
  return cat(value, steps.back().unit);
}

std::string format_memory(Bytes memory) {
  constexpr std::array<Step, 5> kSteps{
      {{"Ti", 1LL << 40U}, {"Gi", 1LL << 30U}, {"Mi", 1LL << 20U}, {"Ki", 1LL << 10U}, {"", 1}}};
  return in_largest_unit(memory.value(), kSteps);
}

std::string format_cpu(MilliCpu cpu) {
  constexpr std::array<Step, 2> kSteps{{{"", core::kMilliPerCpu}, {"m", 1}}};
  return in_largest_unit(cpu.value(), kSteps);
}

std::string format_duration(std::int64_t micros) {
  constexpr std::array<Step, 3> kSteps{{{"s", 1'000'000}, {"ms", 1'000}, {"us", 1}}};
  return micros == 0 ? "0s" : in_largest_unit(micros, kSteps);
}

template <class T, class Format>
ordered_json or_null(const std::optional<T>& value, Format format) {
  return value ? ordered_json(format(*value)) : ordered_json(nullptr);
}

ordered_json reserved_json(const core::Reserved& reserved) {
  return {{"cpu", format_cpu(reserved.cpu)}, {"memory", format_memory(reserved.memory)}};
}

}  // namespace

std::string format_settings(const core::Settings& settings) {
  constexpr std::int64_t kMicrosPerMilli = 1'000;
  constexpr std::int64_t kMicrosPerSecond = 1'000'000;
  ordered_json out;
  out["enabled"] = settings.enabled;
  out["scope"] = word_for(kScopeWords, settings.scope);
  out["trustAnnotations"] = word_for(kTrustWords, settings.trust_annotations);
  out["allowQosOverride"] = settings.allow_qos_override;
  out["cgroupRoot"] = settings.cgroup_root;
  out["cgroupDriver"] = word_for(kDriverWords, settings.cgroup_driver);
  out["placement"]["onMisplaced"] = word_for(kMisplacedWords, settings.on_misplaced);
  out["placement"]["withoutParent"] =
      or_null(settings.without_parent,
              [](core::WithoutParent where) { return word_for(kWithoutParentWords, where); });
  out["onError"] = word_for(kErrorWords, settings.on_error);
  out["nodeMemory"] = or_null(settings.node_memory, format_memory);
  out["nodeCpu"] = or_null(settings.node_cpu, format_cpu);
  out["reserved"]["system"] = reserved_json(settings.system_reserved);
  out["reserved"]["kube"] = reserved_json(settings.kube_reserved);
  out["qosReserved"]["memory"] = or_null(settings.reserve_memory_percent,
                                         [](std::int64_t percent) { return cat(percent, "%"); });
  out["maxPodClaim"] = cat(settings.max_pod_claim_percent, "%");
  out["cpuCFSQuota"] = settings.cpu_cfs_quota;
  out["cpuCFSQuotaPeriod"] = format_duration(settings.cpu_cfs_quota_period.value());
  out["weightFormula"] = word_for(kFormulaWords, settings.weight_formula);
  out["podPidsLimit"] = or_null(settings.pod_pids_limit, [](std::int64_t limit) { return limit; });
  out["memorySwap"]["swapBehavior"] =
      or_null(settings.swap_behavior,
              [](core::SwapBehavior behavior) { return word_for(kSwapWords, behavior); });
  out["singleProcessOOMKill"] = settings.single_process_oom_kill;
  out["releaseDelay"] = format_duration(settings.release_delay_seconds * kMicrosPerSecond);
  out["tierMemoryFloor"] = format_memory(settings.tier_memory_floor);
  out["runtimes"] = settings.runtimes;
  out["chargeMonitor"] = settings.charge_monitor;
  out["stateDir"] = settings.state_dir;
  out["lockDeadline"] = format_duration(settings.lock_deadline_ms * kMicrosPerMilli);
  out["nri"]["metrics"] = or_null(settings.metrics, core::format_metrics_address);
  out["log"]["sink"] = settings.log_sink;
  out["log"]["level"] = word_for(kLevelWords, settings.log_level);
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace podqos::codec
