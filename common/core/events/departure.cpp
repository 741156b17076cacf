#include "common/core/events/departure.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/base/text.h"
#include "common/core/kubernetes/qos.h"
#include "common/core/pods/counting.h"
#include "common/core/pods/grants.h"
#include "common/core/pods/whole_pod.h"

namespace podqos::core {

namespace {

/// An adopted pod is not in podqos's tiers.
std::string describe_release(const PodRecord& record) {
  const std::string_view qos_class = format_qos_class(record.qos_class);
  if (record.adopted) return cat("pod ", record.pod.uid, " of a kubelet has ended: ", qos_class);
  return cat("pod ", record.pod.uid, " released: ", qos_class, ", cpu ",
             format_amount(record.granted.cpu), ", memory ", format_amount(record.granted.memory),
             " returned to the tiers");
}

/// When to decide again about a pod with this charge: after releaseDelay, or as soon as the kernel
/// has flushed memory.stat.
BootSeconds read_again_at(ShmemCharge held, BootSeconds now, const Settings& settings) {
  const BootSeconds latest = retry_at(now, settings);
  if (held != ShmemCharge::kUncertain) return latest;
  return std::min(latest, BootSeconds{now.value() + kStatDelay});
}

/// Decides about the cgroup of a released pod.
void decide_removal(Departure& departure, const DepartureSnapshot& snapshot,
                    const Settings& settings) {
  const PodRecord& record = departure.record;
  if (record.adopted) {
    departure.outcome = PodOutcome::kForgotten;
    return;
  }
  auto held = ShmemCharge::kNone;
  if (snapshot.released_for < settings.release_delay_seconds) held = snapshot.charge();
  if (held == ShmemCharge::kNone) {
    departure.outcome = PodOutcome::kRemoved;
    return;
  }
  departure.outcome = PodOutcome::kRetained;
  departure.until = read_again_at(held, snapshot.now, settings);
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

void remove_container(PodRecord& record, std::size_t index) {
  const auto ended = record.containers.begin() + static_cast<std::ptrdiff_t>(index);
  forget_container(record, *ended);
  record.containers.erase(ended);
}

Departure decide_departure(PodRecord record, TiersRecord& tiers, const DepartureSnapshot& snapshot,
                           const Settings& settings) {
  Departure departure{.record = std::move(record)};
  PodRecord& pod = departure.record;
  if (!pod.released_at && snapshot.has_living) {
    // A reconciliation may have written its values by now.
    if (snapshot.due) forget_retained(tiers, pod.pod.uid);
    // An ended container no longer backs its requests, and one that never started has taken its
    // own with it.
    grant_again(pod, tiers, settings, snapshot.capacity);
    if (snapshot.unwritten) departure.outcome = PodOutcome::kRewritten;
    return departure;
  }
  if (!pod.released_at && snapshot.populated && !pod.adopted) {
    departure.outcome = PodOutcome::kRetained;
    departure.until = retry_at(snapshot.now, settings);
  } else {
    if (!pod.released_at) {
      remove_pod(tiers, pod);
      pod.released_at = snapshot.now;
      departure.message = describe_release(pod);
    }
    decide_removal(departure, snapshot, settings);
  }
  if (departure.until) {
    retain_pod(tiers, {.uid = pod.pod.uid, .until = *departure.until, .cgroup = pod.cgroup});
  } else if (departure.outcome == PodOutcome::kForgotten) {
    forget_retained(tiers, pod.pod.uid);
  }
  return departure;
}

BootSeconds retry_at(BootSeconds now, const Settings& settings) {
  return BootSeconds{now.value() + std::max<std::int64_t>(settings.release_delay_seconds, 1)};
}

}  // namespace podqos::core
