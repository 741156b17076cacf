#include "common/core/events/container_memory.h"

#include <algorithm>

namespace podqos::core {

namespace {

/// A stall of a tenth is more than reclaim that succeeds costs.
constexpr std::int64_t kStalledPercent = 10;
/// A throttled process sleeps for up to 2 s between two events (MEMCG_MAX_HIGH_DELAY_JIFFIES).
constexpr std::int64_t kQuietSeconds = 5;
/// Each step adds a quarter, and this much at least.
constexpr std::int64_t kStepPart = 4;
constexpr Bytes kLeastRaise{16LL << 20U};

enum class Raised : std::uint8_t { kNever, kStays };

/// One value of decide_memory_qos().
std::optional<Bytes> change(std::optional<Bytes> given, Bytes wanted, std::optional<Bytes> held,
                            Bytes page_size, Raised raised) {
  if (!given || !held) return std::nullopt;
  const auto pages = [&](Bytes bytes) { return bytes.value() / page_size.value(); };
  const bool is_raised =
      raised == Raised::kStays && wanted == *given && pages(*held) > pages(wanted);
  if (is_raised || pages(*held) == pages(wanted)) return std::nullopt;
  return wanted;
}

}  // namespace

MemoryQosWrite decide_memory_qos(const MemoryQos& given, const MemoryQos& wanted,
                                 const MemoryQos& held, Bytes page_size) {
  MemoryQosWrite decided;
  const auto decide = [&](std::optional<Bytes> MemoryQos::* of, Raised raised) {
    if (!(given.*of)) return;
    const Bytes value = (wanted.*of).value_or(*(kNoMemoryQos.*of));
    decided.write.*of = change(given.*of, value, held.*of, page_size, raised);
    decided.given.*of = value;
  };
  decide(&MemoryQos::min, Raised::kNever);
  decide(&MemoryQos::low, Raised::kNever);
  decide(&MemoryQos::high, Raised::kStays);
  return decided;
}

std::optional<Bytes> decide_throttling(std::optional<Throttling>& throttling,
                                       const ThrottlingSnapshot& snapshot,
                                       const ThrottlingBounds& bounds, BootSeconds now) {
  const bool rises = throttling && snapshot.events > throttling->events;
  const bool stalls = snapshot.stalled_percent.value_or(kStalledPercent) >= kStalledPercent;
  const bool bound = snapshot.high != kUnlimitedMemory && snapshot.high != snapshot.limit;
  const bool throttled = rises && stalls && bound;
  if (!throttled && throttling && throttling->last && bound &&
      now.value() - throttling->last->value() < kQuietSeconds)
    return std::nullopt;
  Throttling seen{.events = snapshot.events};
  if (throttled) {
    seen.since = throttling->since.value_or(now);
    seen.last = now;
  }
  throttling = seen;
  if (bounds.patience_seconds == 0 || !throttled ||
      now.value() - seen.since->value() < bounds.patience_seconds)
    return std::nullopt;
  throttling->since = now;
  const Bytes step{std::max(snapshot.high.value() / kStepPart, kLeastRaise.value())};
  const Bytes raised = snapshot.high + step;
  if (snapshot.limit) return std::min(raised, *snapshot.limit);
  if (raised >= bounds.allocatable) return kUnlimitedMemory;
  return Bytes{raised.value() / bounds.page_size.value() * bounds.page_size.value()};
}

}  // namespace podqos::core
