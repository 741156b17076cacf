#include "common/core/departure.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/core/counting.h"
#include "common/core/qos.h"
#include "common/core/reservation.h"
#include "common/core/whole_pod.h"

namespace podqos::core {

namespace {

/// An adopted pod is not in podqos's tiers.
std::string describe_release(const PodRecord& record) {
  const std::string_view qos_class = format_qos_class(record.qos_class);
  if (record.adopted) return cat("pod ", record.pod.uid, " of a kubelet has ended: ", qos_class);
  return cat("pod ", record.pod.uid, " released: ", qos_class, ", cpu ", record.granted.cpu.value(),
             "m, memory ", record.granted.memory.value(), " returned to the tiers");
}

/// Grants the pod's requests again: an ended container no longer backs them.
void grant_again(PodRecord& record, TierSums& sums, const NodeCapacity& capacity,
                 const Settings& settings) {
  remove_pod(sums, record);
  grant_requests(record, sums, settings, capacity);
  add_pod(sums, record);
}

}  // namespace

Ending decide_ending(const EndingSnapshot& snapshot) {
  if (snapshot.never_started || !snapshot.cgroup_exists) return Ending::kDone;
  if (snapshot.killed) return Ending::kEnding;
  return snapshot.init_lives ? Ending::kStillAlive : Ending::kDone;
}

bool is_removed(Ending ending, OnEnding on_ending) {
  return ending == Ending::kDone || (ending == Ending::kEnding && on_ending == OnEnding::kDrop);
}

void remove_container(PodRecord& record, std::size_t index, bool replaced) {
  const auto ended = record.containers.begin() + static_cast<std::ptrdiff_t>(index);
  if (!replaced) forget_container(record, ended->name);
  record.containers.erase(ended);
}

Departure decide_departure(PodRecord record, const DepartureSnapshot& snapshot,
                           const Settings& settings) {
  Departure departure{.outcome = PodOutcome::kStays,
                      .record = std::move(record),
                      .sums = snapshot.sums,
                      .until = std::nullopt,
                      .message = {}};
  PodRecord& pod = departure.record;
  if (snapshot.has_living) {
    if (snapshot.unwritten) {
      departure.outcome = PodOutcome::kRewritten;
    } else if (backed_memory(pod)) {
      grant_again(pod, departure.sums, snapshot.capacity, settings);
    }
    return departure;
  }
  if (snapshot.populated && !pod.adopted) {
    departure.outcome = PodOutcome::kRetained;
    departure.until = retry_at(snapshot.now, settings);
    return departure;
  }
  departure.outcome = PodOutcome::kReleased;
  if (pod.released_at) return departure;
  remove_pod(departure.sums, pod);
  pod.released_at = snapshot.now;
  departure.message = describe_release(pod);
  return departure;
}

bool depends_on_charge(const PodRecord& record, std::int64_t released_for,
                       const Settings& settings) {
  return !record.adopted && released_for < settings.release_delay_seconds;
}

Removal decide_removal(const PodRecord& record, ShmemCharge held) {
  if (record.adopted) return Removal::kForget;
  return held == ShmemCharge::kNone ? Removal::kRemove : Removal::kRetain;
}

UnixSeconds read_again_at(ShmemCharge held, UnixSeconds now, const Settings& settings) {
  const UnixSeconds latest = retry_at(now, settings);
  if (held != ShmemCharge::kUncertain) return latest;
  return std::min(latest, UnixSeconds{now.value() + kStatDelay});
}

UnixSeconds retry_at(UnixSeconds now, const Settings& settings) {
  return UnixSeconds{now.value() + std::max<std::int64_t>(settings.release_delay_seconds, 1)};
}

}  // namespace podqos::core
