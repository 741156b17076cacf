#pragma once

#include <functional>
#include <set>
#include <string>

#include "common/base/units.h"

namespace podqos::app {

/// Container and sandbox ids.
using Ids = std::set<std::string, std::less<>>;

/// The process that places containers for an engine, and the ids of containers that the engine has
/// announced to it.
struct Listener {
  Pid pid;
  Ids ids;
};

/// All containers of an engine, as the engine reports them.
struct EngineList {
  Ids ids;       ///< sandboxes and containers, including those not started yet
  Pid listener;  ///< the process that received the list and places containers
  StartTime listener_start;

  /// True if the process that placed a container is the listener itself and not a later process
  /// with its pid.
  [[nodiscard]] bool is_listener(Pid pid, StartTime start_time) const {
    return pid == listener && start_time == listener_start;
  }
};

}  // namespace podqos::app
