#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "common/app/engine_events.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/sys/clock.h"

namespace podqos::nri {

/// An event of a pod or container as the runtime reported it.
struct DeferredEvent {
  enum class Kind : std::uint8_t { kStarted, kChanged, kEnded };
  Kind kind;
  app::ContainerEvent event;  ///< for kEnded only the id
  int tries = 0;              ///< retries so far
};

/// Whether a result is kTimeout, so that a later attempt can succeed: a lock or systemd was not
/// free.
template <class Value>
[[nodiscard]] bool is_late(const Result<Value>& done) {
  return !done && done.error().code == ErrorCode::kTimeout;
}

/// Events that could not be handled when the runtime reported them: at most one of a kind for each
/// container, applied in the order of the kinds.
class DeferredEvents {
 public:
  /// Applies one event.
  /// @return false: what is to end has not ended; kTimeout: the lock or systemd was not free
  using Apply = std::function<Result<bool>(const DeferredEvent&, const app::Timeouts&)>;
  /// Called for each event that is dropped, with the reason; not for a start or change whose
  /// container has ended.
  using Drop = std::function<void(const DeferredEvent&, const Error&)>;

  /// @param clock  outlives the object
  DeferredEvents(const sys::Clock& clock, Apply apply, Drop drop)
      : clock_(clock), apply_(std::move(apply)), drop_(std::move(drop)) {}

  /// Defers an event. A start or change replaces a deferred one of the container; a deferred end
  /// stays. Dropped if its annotations, which authors of pods write, have more than 4 KiB, and more
  /// than 8 MiB together with those of the events that are deferred already.
  void defer(const DeferredEvent& event);
  /// Removes all events of a pod or container that has ended or been released.
  void remove(const std::string& id);
  /// Removes starts and ends, which a new list of all containers replaces. Changes stay: the list
  /// does not contain them.
  void keep_changes();
  /// Prepares for a later start or change: removes the deferred one of its kind, which it replaces,
  /// and applies a deferred start before a change.
  /// @return kTimeout: the lock is still held.
  [[nodiscard]] Status apply_before(const DeferredEvent& later, const app::Timeouts& timeouts);
  /// Applies deferred events, each for a bounded number of attempts.
  /// @return false: an attempt timed out, waiting for the lock or for systemd, or the deadline has
  ///         passed.
  [[nodiscard]] bool apply(const app::Timeouts& timeouts);

 private:
  using Key = std::pair<std::string, DeferredEvent::Kind>;  ///< id and kind
  /// Decides after an attempt, and reports an event that is dropped.
  /// @return whether the event stays deferred.
  [[nodiscard]] bool keeps(DeferredEvent& event, const Result<bool>& applied) const;

  const sys::Clock& clock_;
  Apply apply_;
  Drop drop_;
  std::map<Key, DeferredEvent> events_;
};

}  // namespace podqos::nri
