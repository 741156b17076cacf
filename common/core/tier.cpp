#include "common/core/tier.h"

#include <algorithm>

namespace podqos::core {

namespace {

/// `available` without the reserved part, at least 0. The kubelet's value may become negative.
Bytes after_reserve(Bytes available, Bytes requested, std::int64_t percent) {
  const std::int64_t reserved = mul_div(requested.value(), percent, kPercent);
  return Bytes{std::max<std::int64_t>(saturating_sub(available.value(), reserved), 0)};
}

}  // namespace

TierSum& TierSums::of(QosClass qos_class) {
  switch (qos_class) {
    case QosClass::kGuaranteed: return guaranteed;
    case QosClass::kBurstable: return burstable;
    case QosClass::kBestEffort: return besteffort;
  }
  return besteffort;
}

const TierSum& TierSums::of(QosClass qos_class) const {
  switch (qos_class) {
    case QosClass::kGuaranteed: return guaranteed;
    case QosClass::kBurstable: return burstable;
    case QosClass::kBestEffort: return besteffort;
  }
  return besteffort;
}

TierValues tier_values(const TierSums& sums, const TierParams& params) {
  TierValues values;
  values.burstable.cpu_shares = cpu_shares_for(sums.burstable.cpu);
  values.besteffort.cpu_shares = kMinShares;
  if (!params.reserve_percent || params.allocatable_memory.value() <= 0) return values;
  // Each division is truncated on its own, as in the kubelet, so the sum of both reserves may be
  // one byte short.
  const std::int64_t percent = std::clamp<std::int64_t>(*params.reserve_percent, 0, kPercent);
  const Bytes free = after_reserve(params.allocatable_memory, sums.adopted.memory, kPercent);
  const Bytes burstable = after_reserve(free, sums.guaranteed.memory, percent);
  values.burstable.memory_limit = burstable;
  values.besteffort.memory_limit = after_reserve(burstable, sums.burstable.memory, percent);
  return values;
}

TierSum& TierSum::operator+=(const TierSum& more) {
  pods += more.pods;
  cpu = MilliCpu{saturating_add(cpu.value(), more.cpu.value())};
  memory = Bytes{saturating_add(memory.value(), more.memory.value())};
  return *this;
}

TierSum sum_of_own(const TierSums& sums) {
  TierSum all;
  for (const TierSum* sum : {&sums.guaranteed, &sums.burstable, &sums.besteffort})
    all += *sum;
  return all;
}

TierMemoryQos tier_memory_qos(const TierSums& sums, MemoryReservationPolicy policy) {
  switch (policy) {
    case MemoryReservationPolicy::kNone:
      return {.root_memory_min = Bytes{0}, .burstable_memory_low = Bytes{0}};
    case MemoryReservationPolicy::kTieredReservation:
      return {.root_memory_min = Bytes{saturating_add(sums.guaranteed.memory.value(),
                                                      sums.burstable.memory.value())},
              .burstable_memory_low = sums.burstable.memory};
  }
  return {};
}

Bytes bounded_tier_limit(Bytes wanted, std::optional<Bytes> usage, Bytes floor) {
  const Bytes at_least_floor = std::max(wanted, floor);
  if (!usage) return at_least_floor;
  return std::max(at_least_floor, Bytes{saturating_add(usage->value(), kTierMemoryMargin.value())});
}

Bytes allocatable(Bytes capacity, Bytes system_reserved, Bytes kube_reserved) {
  const std::int64_t reserved = saturating_add(system_reserved.value(), kube_reserved.value());
  return Bytes{std::max<std::int64_t>(saturating_sub(capacity.value(), reserved), 0)};
}

std::int64_t grant(std::int64_t claimed, std::int64_t capacity, std::int64_t already_granted) {
  const std::int64_t left = saturating_sub(capacity, already_granted);
  return std::max<std::int64_t>(std::min(claimed, left), 0);
}

}  // namespace podqos::core
