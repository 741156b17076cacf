#pragma once

#include <cstddef>
#include <string>

#include "common/base/units.h"
#include "common/core/record.h"

namespace podqos::core {

/// The init process of a container that has started.
struct StartedInit {
  Pid pid;
  StartTime start_time;
  std::string cgroup;  ///< its current one
};

/// A container's record once it has started.
struct Confirmation {
  PodRecord record;
  std::string warning;  ///< for the log; empty if the container is where it was placed
};

/// Makes a placed container live, and notes where it really is and the bundle that its engine
/// reports.
/// @param index  of the container in the record
/// @param bundle  canonical; empty if the engine reports none
[[nodiscard]] Confirmation decide_confirmation(PodRecord record, std::size_t index,
                                               const StartedInit& init, const std::string& bundle,
                                               TiersRecord& tiers);

}  // namespace podqos::core
