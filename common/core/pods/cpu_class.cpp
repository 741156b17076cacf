#include "common/core/pods/cpu_class.h"

#include <algorithm>

#include "common/core/cgroups/value_table.h"

namespace podqos::core {

Micros cpu_burst_for(std::optional<Micros> quota, std::int64_t percent) {
  if (!quota || *quota <= Micros{0}) return Micros{0};
  const Micros part{mul_div(quota->value(), percent, kPercent)};
  return std::clamp(part, Micros{0}, std::max(kMaxQuota - *quota, Micros{0}));
}

std::optional<std::int64_t> burst_percent(const CpuBurst& configured, QosClass qos_class) {
  switch (qos_class) {
    case QosClass::kGuaranteed: return configured.guaranteed;
    case QosClass::kBurstable: return configured.burstable;
    case QosClass::kBestEffort: break;
  }
  return std::nullopt;
}

std::optional<std::int64_t> burst_percent(const PodRecord& record, const Settings& settings) {
  if (!record.cpu_burst) return std::nullopt;
  return std::min(*record.cpu_burst,
                  burst_percent(settings.cpu_burst, record.qos_class).value_or(0));
}

void decide_cpu_class(PodRecord& record, const std::optional<PodRecord>& before,
                      const Settings& settings) {
  if (record.kubelets_own) return;
  record.cpu_burst = burst_percent(settings.cpu_burst, record.qos_class);
  if (!record.cpu_burst && before && before->cpu_burst) record.cpu_burst = 0;
  record.cpu_idle = before && before->cpu_idle ? std::optional{false} : std::nullopt;
}

void apply_cpu_annotations(PodRecord& record, const PodqosAnnotations& annotations,
                           const Settings& settings) {
  if (record.kubelets_own || settings.trust_annotations == TrustAnnotations::kNone) return;
  if (record.cpu_burst && annotations.cpu_burst)
    record.cpu_burst = std::min(*record.cpu_burst, *annotations.cpu_burst);
  if (annotations.cpu_idle) record.cpu_idle = true;
}

void set_cpu_class(CgroupValues& values, const PodRecord& record, const Settings& settings) {
  if (const auto percent = burst_percent(record, settings))
    values.cpu_burst = cpu_burst_for(limiting_quota(values), *percent);
  values.cpu_idle = record.cpu_idle;
  if (record.cpu_idle.value_or(false)) values.cpu_shares = kMinShares;
}

}  // namespace podqos::core
