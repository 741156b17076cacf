#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/kubernetes/pod_resources.h"
#include "common/core/record.h"
#include "common/core/settings.h"

namespace podqos::core {

/// What has happened to a container, a pod or a cgroup.
enum class EventKind : std::uint8_t {
  kPlaced,      ///< a container was admitted to its pod before it was created
  kRegistered,  ///< the same of one that ran already
  kFailed,      ///< podqos failed for a container that starts nevertheless, or that had started
  kRefused,     ///< podqos failed for a container, or its pod has no room: it was not started
  kMisplaced,   ///< a container started outside its pod
  kMoved,       ///< another program has moved a container out of its pod
  kCorrected,   ///< a reconciliation wrote a value, because the cgroup had another one
  kResized,     ///< a pod has other resources
  kThrottled,   ///< a container was throttled at memory.high for too long
  kOomKilled,   ///< the kernel has killed processes of a container for want of memory
  kEvicted,     ///< a pod was killed because its tier was under memory pressure
  kReleased,    ///< a pod has ended, and its requests have left its tier
};
/// The kinds as they are written in files and output, in the order of EventKind.
inline constexpr std::string_view kEventKinds =
    "placed registered failed refused misplaced moved corrected resized throttled oom-killed "
    "evicted "
    "released";

/// "placed"
[[nodiscard]] std::string_view format_event_kind(EventKind kind);

/// An entry of the journal of events. A text is "" where it is not known or does not apply.
struct Event {
  UnixMillis time = {};
  EventKind kind = EventKind::kPlaced;
  std::string program = {};  ///< that has recorded it: "podqos-hook"
  std::string engine = {};   ///< "docker", …
  std::string pod_namespace = {};
  std::string pod_name = {};
  std::string uid = {};           ///< the pod's
  std::string container = {};     ///< its name in the pod
  std::string container_id = {};  ///< the engine's id of it
  std::optional<QosClass> qos_class = std::nullopt;
  std::string cgroup = {};  ///< of the container or, where there is none, of the pod or tier
  std::string text = {};    ///< a sentence for people; of a failure with its cause and the remedy
  friend bool operator==(const Event&, const Event&) = default;
};

/// kRefused if a container is refused because of this error, else kFailed; see refuses().
[[nodiscard]] inline EventKind kind_of_failure(const Settings& settings, const Error& error) {
  return refuses(settings, error) ? EventKind::kRefused : EventKind::kFailed;
}

/// An event with all that a record tells of its pod.
/// @param container  of the record; nullptr: it is about the whole pod
[[nodiscard]] Event event_of(EventKind kind, const PodRecord& record,
                             const ContainerRecord* container = nullptr);

/// Whether it was recorded within the hour before `now`.
[[nodiscard]] bool is_recent(const Event& event, UnixMillis now);

/// Whether the journal has the same event, of whichever program, within the hour before `now`.
/// @param journal  in the order in which they were recorded
[[nodiscard]] bool has_lately(std::span<const Event> journal, const Event& event, UnixMillis now);

}  // namespace podqos::core
