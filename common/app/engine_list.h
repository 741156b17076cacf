#pragma once

#include <functional>
#include <set>
#include <string>

#include "common/base/units.h"

namespace podqos::app {

using Ids = std::set<std::string, std::less<>>;

/// The process that places containers for an engine, and ids of what the engine has told it of.
struct Listener {
  Pid pid;
  Ids ids;
};

/// What an engine has, by its own word.
struct EngineList {
  Ids ids;       ///< of sandboxes and containers, those included that have not started yet
  Pid listener;  ///< who places containers for it, and has heard this
  StartTime listener_start;

  [[nodiscard]] bool is_listener(Pid pid, StartTime start_time) const {
    return pid == listener && start_time == listener_start;
  }
};

}  // namespace podqos::app
