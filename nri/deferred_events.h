#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "common/app/engine_events.h"
#include "common/base/error.h"
#include "common/core/request.h"
#include "common/sys/clock.h"

namespace podqos::nri {

/// An event of a pod or container as the runtime reported it.
struct ContainerEvent {
  enum class Kind : std::uint8_t { kStarted, kChanged, kEnded };
  Kind kind;
  core::ContainerFacts facts;  ///< for kEnded only the id
  app::Process process = {};   ///< as it was reported
};

/// The outcome of applying an event without an error.
enum class Applied : std::uint8_t {
  kDone,
  kLater,  ///< incomplete: to be applied again
  kHeld,   ///< not attempted: another event has to come first
};

/// Whether a result is kTimeout, so that a later attempt can succeed.
[[nodiscard]] bool is_late(const Status& done);

/// Events that could not be handled when the runtime reported them: at most one of a kind for each
/// container, applied in the order of the kinds.
class DeferredEvents {
 public:
  /// Applies one event.
  using Apply = std::function<Result<Applied>(const ContainerEvent&)>;
  /// Called for each event that is dropped, with the reason.
  using Drop = std::function<void(const ContainerEvent&, const Error&)>;

  /// @param clock  outlives the object
  explicit DeferredEvents(const sys::Clock& clock) : clock_(clock) {}

  /// Defers a start or change, which replaces a deferred one of the container. Only annotations can
  /// be long, because authors of pods write them.
  /// @return kTooLarge if its annotations have more than 4 KiB, and more than 8 MiB together with
  ///         those of the events that are deferred already.
  [[nodiscard]] Status defer(ContainerEvent event);
  /// Defers the end of a pod or container, unless it is deferred already.
  void defer_end(const std::string& id);
  /// Removes all events of a pod or container that has ended or been released.
  void remove(const std::string& id);
  /// Prepares for a later start or change: removes the deferred one of its kind, which it replaces,
  /// and applies a deferred start before a change.
  /// @param drop  as for apply(): with another error than kTimeout a retry would not help
  /// @return kTimeout: the lock is still held.
  [[nodiscard]] Status apply_before(const ContainerEvent& later, const Apply& apply,
                                    const Drop& drop);
  /// Applies deferred events for a bounded time, and each for a bounded number of attempts.
  /// @param deadline  when no further event is attempted
  /// @param drop  called for each event that is dropped; not for kNotFound of a start or change,
  ///              whose container has ended
  /// @return false: an attempt timed out, waiting for the lock or for systemd, or the deadline has
  ///         passed.
  [[nodiscard]] bool apply(const Apply& apply, const Drop& drop, sys::Clock::TimePoint deadline);

  /// Removes starts and ends, which a new list of all containers replaces. Changes stay: the list
  /// does not contain them.
  void keep_changes();

 private:
  using Key = std::pair<std::string, ContainerEvent::Kind>;  ///< id and kind
  struct Deferred {
    ContainerEvent event;
    int tries = 0;  ///< retries so far
  };
  /// Decides after an attempt, and reports an event that is dropped.
  /// @return whether the event stays deferred.
  [[nodiscard]] static bool keeps(Deferred& deferred, const Result<Applied>& applied,
                                  const Drop& drop);

  const sys::Clock& clock_;
  std::map<Key, Deferred> events_;
};

}  // namespace podqos::nri
