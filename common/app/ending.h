#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/app/log.h"
#include "common/app/timeouts.h"
#include "common/base/error.h"
#include "common/base/units.h"
#include "common/core/settings.h"

namespace podqos::app {

enum class Ending : std::uint8_t {
  kDone,        ///< taken out of its pod, or not known
  kEnding,      ///< its processes have been killed and are not gone yet
  kStillAlive,  ///< its process lives: that of a later container of this id, or for a moment yet
};

/// What to do about a container whose processes are on their way out.
enum class OnEnding : std::uint8_t {
  kLeave,  ///< nothing: kEnding
  kDrop,   ///< take it out; if it was the last one, its pod ends once its cgroup is empty
};

struct Ended {
  Ending ending = Ending::kDone;
  std::optional<Error> unfinished = std::nullopt;  ///< for follow_up()
};

/// The container that has ended, as an engine names it.
struct EndedContainer {
  std::string id;
  std::string bundle;  ///< canonical; "" when the engine names none
  /// The process that placed it, if it was to be created by that: a creation that failed ends
  /// although its creator lives.
  Pid caller;
};

/// Takes a container out of its pod and releases the pod with its last container: one try, under
/// the lock.
[[nodiscard]] Result<Ended> end_container(const core::Settings& settings, Log& log,
                                          const EndedContainer& ended, OnEnding on_ending,
                                          const Timeouts& timeouts = {});

}  // namespace podqos::app
