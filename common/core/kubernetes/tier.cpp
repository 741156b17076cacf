#include "common/core/kubernetes/tier.h"

#include <algorithm>

#include "common/base/text.h"

namespace podqos::core {

namespace {

/// `available` without the reserved part, at least 0. The kubelet's value may become negative.
Bytes after_reserve(Bytes available, Bytes requested, std::int64_t percent) {
  return rest_of(available, Bytes{mul_div(requested.value(), percent, kPercent)});
}

}  // namespace

TierValues tier_values(const TierSums& sums, std::optional<std::int64_t> reserve_percent,
                       Bytes allocatable_memory) {
  TierValues values;
  values.burstable.cpu_shares = cpu_shares_for(sums.burstable.cpu);
  values.besteffort.cpu_shares = kMinShares;
  if (!reserve_percent || allocatable_memory.value() <= 0) return values;
  // Each division is truncated on its own, as in the kubelet, so the sum of both reserves may be
  // one byte short.
  const std::int64_t percent = std::clamp<std::int64_t>(*reserve_percent, 0, kPercent);
  const Bytes free = after_reserve(allocatable_memory, sums.kubelets.memory, kPercent);
  const Bytes burstable = after_reserve(free, sums.guaranteed.memory, percent);
  values.burstable.memory_limit = burstable;
  values.besteffort.memory_limit = after_reserve(burstable, sums.burstable.memory, percent);
  return values;
}

TierSum& TierSum::operator+=(const TierSum& more) {
  pods += more.pods;
  cpu = cpu + more.cpu;
  memory = memory + more.memory;
  return *this;
}

TierSum TierSum::capped(const TierSum& most) const {
  return {.pods = pods,
          .cpu = std::max(std::min(cpu, most.cpu), MilliCpu{0}),
          .memory = std::max(std::min(memory, most.memory), Bytes{0})};
}

TierSum sum_of_own(const TierSums& sums) {
  TierSum all;
  for (const TierSum* sum : {&sums.guaranteed, &sums.burstable, &sums.besteffort})
    all += *sum;
  return all;
}

UnifiedValues root_reservation(const TierSums& sums) {
  return {{"memory.min", cat((sums.guaranteed.memory + sums.burstable.memory).value())},
          {"memory.low", cat(sums.burstable.memory.value())}};
}

Bytes bounded_tier_limit(Bytes wanted, std::optional<Bytes> usage, Bytes floor) {
  return std::max({wanted, floor, usage ? *usage + kTierMemoryMargin : floor});
}

}  // namespace podqos::core
