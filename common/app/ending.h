#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/app/log.h"
#include "common/app/timeouts.h"
#include "common/app/transaction.h"
#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/settings.h"

namespace podqos::app {

/// What an end-of-container event found.
enum class Ending : std::uint8_t {
  kDone,        ///< removed from its pod, or unknown to podqos
  kEnding,      ///< its processes were killed but still exist
  kStillAlive,  ///< its process runs: a later container with this id, or not killed yet
};

/// What to do if the container's processes were killed but still exist.
enum class OnEnding : std::uint8_t {
  kLeave,  ///< change nothing, return kEnding
  kDrop,   ///< remove it; an empty pod ends once its cgroup is empty
};

/// The result of end_container().
struct Ended {
  Ending ending = Ending::kDone;
  std::optional<Error> unfinished = std::nullopt;  ///< for follow_up()
};

/// A container that has ended, as reported by the engine.
struct EndedContainer {
  std::string id;
  std::string bundle;  ///< canonical; empty if the engine reports none
  /// The process that placed the container. If it is the recorded creator, creation failed and the
  /// container is removed although its creator runs.
  Pid caller;
};

/// Removes a container from its pod and releases the pod with its last container. Makes one attempt
/// under the lock; the caller retries on kEnding and kStillAlive.
/// @return kConflict if several containers share the id and the engine reports no bundle.
[[nodiscard]] Result<Ended> end_container(const core::Settings& settings, Log& log,
                                          const EndedContainer& ended, OnEnding on_ending,
                                          const Timeouts& timeouts = {});
/// As above, in a transaction of the caller, which this function finishes.
[[nodiscard]] Result<Ended> end_container(Transaction& transaction, const EndedContainer& ended,
                                          OnEnding on_ending);

}  // namespace podqos::app
