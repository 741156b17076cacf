#pragma once

#include <string>

#include "common/core/container_facts.h"
#include "common/core/record.h"

namespace podqos::core {

/// What an engine has changed about a pod that runs: the resources of one container, or of the pod.
struct Resize {
  bool whole_pod = false;  ///< told of the sandbox: the sums of the pod itself
  std::string container;   ///< else its name within the pod
  EngineResources now;     ///< all of them as they are since; -1: no limit any more
};

/// Lets what the engine says now count instead of what was known of the pod. A value that an engine
/// would make of the known one changes nothing: its units are coarser. A pod that has values of its
/// own, or the engine's sums, gets no less than its containers have; they follow downwards when the
/// engine tells of the pod.
/// @note KEP-1287, in-place update of pod resources: the class stays what it is.
void apply_resize(PodRecord& record, const Resize& resize);

/// Lets `whole` have no less of what it bounds than the pod's containers have together.
void raise_to_containers(Resources& whole, const Pod& pod);

}  // namespace podqos::core
