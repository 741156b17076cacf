#include "common/core/events/decide_departure.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/core/pods/counted_requests.h"
#include "common/core/pods/counting.h"

namespace podqos::core {

namespace {

/// Of what was reported while it lived.
std::string_view describe_kills(const PodRecord& record) {
  const bool killed = record.oom_kills && record.oom_kills->reported > 0;
  return killed ? "; processes of it were OOM-killed" : "";
}

/// A kubelet's pod is not in podqos's tiers.
std::string describe_release(const PodRecord& record) {
  const std::string_view qos_class = format_qos_class(record.qos_class);
  if (record.kubelets_own)
    return cat("a kubelet's pod has ended, ", qos_class, describe_kills(record));
  return cat("released, ", qos_class, ": cpu ", format_amount(record.counted_request.cpu),
             ", memory ", format_amount(record.counted_request.memory), " returned to the tiers",
             describe_kills(record));
}

/// After which memory.stat has all changes: the kernel flushes it every two seconds.
constexpr BootSeconds kStatDelay{3};

}  // namespace

ShmemCharge shmem_charge(const MemoryCharge& charge, std::int64_t processors, Bytes page_size) {
  if (charge.shmem.value() > 0) return ShmemCharge::kSome;
  // Per processor: a batch of pages not in memory.stat yet, and a batch charged in advance.
  constexpr std::int64_t kBatch = 64;
  const std::int64_t uncounted = 2 * kBatch * page_size.value() * processors;
  const std::int64_t difference = charge.usage.value() - charge.counted.value();
  return std::abs(difference) > uncounted ? ShmemCharge::kUncertain : ShmemCharge::kNone;
}

void remove_container(PodRecord& record, std::size_t index) {
  const auto ended = record.containers.begin() + static_cast<std::ptrdiff_t>(index);
  forget_container(record, *ended);
  record.containers.erase(ended);
}

Departure decide_departure(PodRecord record, const DepartureSnapshot& snapshot,
                           const Settings& settings) {
  Departure departure{.record = std::move(record)};
  PodRecord& pod = departure.record;
  if (!pod.released_at && snapshot.has_living) {
    // A reconciliation may have written its values by now.
    if (snapshot.due) pod.due.reset();
    // An ended container no longer backs its requests, and one that never started has taken its
    // own with it.
    count_requests(pod, settings, snapshot.capacity);
    if (snapshot.unwritten) departure.outcome = PodOutcome::kRewritten;
    return departure;
  }
  const auto postpone = [&](BootSeconds until) {
    departure.outcome = PodOutcome::kPostponed;
    pod.due = until;
    return departure;
  };
  const BootSeconds later = retry_at(snapshot.now, settings);
  if (!pod.released_at && snapshot.populated && !pod.kubelets_own) return postpone(later);
  if (!pod.released_at) {
    pod.released_at = snapshot.now;
    departure.message = describe_release(pod);
  }
  if (pod.kubelets_own) {
    departure.outcome = PodOutcome::kForgotten;
    return departure;
  }
  const BootSeconds delay{settings.release_delay_seconds};
  const bool may_hold = snapshot.now - *pod.released_at < delay;
  const auto held = may_hold ? snapshot.charge() : ShmemCharge::kNone;
  if (held == ShmemCharge::kSome) return postpone(later);
  if (held == ShmemCharge::kUncertain) return postpone(std::min(later, snapshot.now + kStatDelay));
  departure.outcome = PodOutcome::kRemoved;
  return departure;
}

BootSeconds retry_at(BootSeconds now, const Settings& settings) {
  return BootSeconds{now.value() + std::max<std::int64_t>(settings.release_delay_seconds, 1)};
}

}  // namespace podqos::core
