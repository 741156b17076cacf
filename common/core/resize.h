#pragma once

#include <string>

#include "common/core/claim.h"
#include "common/core/identity.h"
#include "common/core/record.h"
#include "common/core/request.h"

namespace podqos::core {

/// New resources of a running container, or of a running pod as a whole.
struct Resize {
  bool whole_pod = false;  ///< the resources of the pod, updated with its sandbox
  std::string container;   ///< else the container's name in the pod
  EngineResources now;     ///< all resources after the update; -1: no limit any more
};

/// Whether the engine's quota, or none, is what it makes of the known CPU limit.
[[nodiscard]] bool gives_quota(const Resources& known, const EngineResources& now);

/// Replaces the pod's known resources by those of an in-place update. A value that the known one
/// converts to changes nothing, since the engine's units are coarser. Pod-level resources and the
/// engine's sums are raised to the sum of the containers; only an update of the pod lowers them.
/// Sums below that of the containers before the update are a kubelet's pod-level resources, and
/// stay, as do limits of a pod that its engine enforces. The class does not change.
/// @note KEP-1287, in-place update of pod resources.
void apply_resize(PodRecord& record, const Resize& resize);

/// Gives a container that replaces a resized one the resources of its spec, which are the engine's
/// again. All containers of a CRI engine's pod have one spec, so that a record that differs in
/// nothing but resources tells of a resize.
/// @param identity  of the new container
/// @param claim  a whole spec
/// @return false if the record was not resized, but has another spec: it stays as it is
[[nodiscard]] bool undo_resize(PodRecord& record, const Identity& identity, const PodClaim& claim);

/// Raises the resources that `whole` has to at least the sum of the pod's containers.
void raise_to_containers(Resources& whole, const Pod& pod);

}  // namespace podqos::core
