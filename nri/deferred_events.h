#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "common/app/engine_events.h"
#include "common/base/error.h"
#include "common/core/container_facts.h"
#include "common/sys/clock.h"
#include "nri/node_state.h"

namespace podqos::nri {

/// What the runtime has reported of a pod or container.
struct ContainerEvent {
  enum class Kind : std::uint8_t { kStarted, kChanged, kEnded };
  Kind kind;
  core::ContainerFacts facts;  ///< of one that has ended only the id
  std::uint32_t pid = 0;
};

/// How far an event could be applied that did not fail.
enum class Applied : std::uint8_t {
  kDone,
  kLater,  ///< it was tried, and is to be tried again
  kHeld,   ///< it was not tried: another event comes first
};

/// Is it the lock?
[[nodiscard]] bool is_late(const Status& done);

/// What could not be done when the runtime reported it, in its order: events of containers, the
/// runtime's whole state, and a recomputation of everything.
class DeferredEvents {
 public:
  using Apply = std::function<Result<Applied>(const ContainerEvent&)>;
  using Drop = std::function<void(const ContainerEvent&, const Error&)>;

  /// @param clock  outlives the object
  explicit DeferredEvents(const sys::Clock& clock) : clock_(clock) {}

  // Events of containers: few and short, so that they take no more memory than is given away for
  // that; ends, of which only the id is kept, as many as there are.

  /// For later; what is too much or too long is dropped.
  void defer(ContainerEvent event);
  void defer_end(const std::string& id);
  /// The pod or container has ended, or been released.
  void remove(const std::string& id);
  /// Before a later event of the same pod or container is applied: applies what is left of it, but
  /// for one of the same kind, of which the later says all.
  /// @return kTimeout: the lock is still held. Other errors are past remedy.
  [[nodiscard]] Status apply_before(const ContainerEvent& later, const Apply& apply);
  /// Applies what is kept, as long as it does not take long, and as often as it makes sense.
  /// @param drop  is told of each that is dropped with an error; kNotFound is none, for then it has
  ///              ended.
  /// @return false: one has waited in vain, for the lock or for systemd.
  [[nodiscard]] bool apply(const Apply& apply, const Drop& drop);

  // All that the runtime has.

  /// Replaces what is deferred but for changes, of which nothing is said there.
  void defer_synchronization(NodeState state);
  /// What is still to be read of it, once.
  [[nodiscard]] std::optional<NodeState> remove_state();
  void begin_synchronization(app::Synchronization all) { synchronization_.emplace(std::move(all)); }
  void end_synchronization();
  /// nullptr: none has begun.
  [[nodiscard]] app::Synchronization* synchronization() {
    return synchronization_ ? &*synchronization_ : nullptr;
  }

  // A recomputation of everything.

  void defer_recomputation() { recomputation_ = true; }
  void remove_recomputation() { recomputation_ = false; }
  [[nodiscard]] bool has_recomputation() const { return recomputation_; }

 private:
  struct Deferred {
    ContainerEvent event;
    int tries = 0;  ///< so far, after the first
  };
  /// One try. @return whether it is to be kept.
  [[nodiscard]] static bool keeps(Deferred& deferred, const Result<Applied>& applied);

  const sys::Clock& clock_;
  std::deque<Deferred> events_;  ///< oldest first
  std::optional<NodeState> state_;
  std::optional<app::Synchronization> synchronization_;
  bool recomputation_ = true;  ///< something may have been missed, before the start at least
};

}  // namespace podqos::nri
