#include "common/core/events/container_memory.h"

#include <algorithm>
#include <array>

namespace podqos::core {

namespace {

/// A stall of a tenth is more than reclaim that succeeds costs.
constexpr std::int64_t kStalledPercent = 10;
/// A throttled process sleeps for up to 2 s between two events (MEMCG_MAX_HIGH_DELAY_JIFFIES).
constexpr std::int64_t kQuietSeconds = 5;
/// Each step adds a quarter, and this much at least.
constexpr std::int64_t kStepPart = 4;
constexpr Bytes kLeastRaise{16LL << 20U};

constexpr std::array kEach = {&MemoryQos::min, &MemoryQos::low, &MemoryQos::high};

}  // namespace

MemoryQos next_memory_qos(const MemoryQos& given, const MemoryQos& wanted) {
  MemoryQos next;
  for (const auto each : kEach)
    if (given.*each) next.*each = (wanted.*each).value_or(*(kNoMemoryQos.*each));
  return next;
}

MemoryQos differing_memory_qos(const MemoryQos& wanted, const MemoryQos& held, Bytes page_size) {
  const auto pages = [&](Bytes bytes) { return bytes.value() / page_size.value(); };
  MemoryQos found;
  for (const auto each : kEach) {
    const bool known = wanted.*each && held.*each;
    if (known && pages(*(wanted.*each)) != pages(*(held.*each))) found.*each = wanted.*each;
  }
  return found;
}

void decide_throttling(std::optional<Throttling>& throttling, const ThrottlingSnapshot& snapshot,
                       const MemoryQosParams& node, std::int64_t patience, BootSeconds now) {
  const bool rises = throttling && snapshot.events > throttling->events;
  const bool stalls = snapshot.stalled_percent.value_or(kStalledPercent) >= kStalledPercent;
  const bool bound = snapshot.high != kUnlimitedMemory && snapshot.high != snapshot.limit;
  const bool throttled = rises && stalls && bound;
  if (!throttled && throttling && throttling->last && bound &&
      now.value() - throttling->last->value() < kQuietSeconds)
    return;
  Throttling seen{.events = snapshot.events};
  if (throttling) seen.raised = throttling->raised;
  if (throttled) {
    seen.since = throttling->since.value_or(now);
    seen.last = now;
  }
  throttling = seen;
  if (patience == 0 || !throttled || now.value() - seen.since->value() < patience) return;
  throttling->since = now;
  const Bytes step{std::max(snapshot.high.value() / kStepPart, kLeastRaise.value())};
  const Bytes raised = snapshot.high + step;
  const Bytes pages{raised.value() / node.page_size.value() * node.page_size.value()};
  if (snapshot.limit)
    throttling->raised = std::min(raised, *snapshot.limit);
  else
    throttling->raised = raised < node.allocatable ? pages : kUnlimitedMemory;
}

}  // namespace podqos::core
